// SPDX-License-Identifier: BSD-3-Clause
// Probing for the places of a Jacobian's entries: the vectors to multiply with, and what the products say. The loop
// around them is in pattern.cpp, and in Python.
#include <gossamer/jacobian.h>
#include <gossamer/kernels/probe.h>
#include <gossamer/products.h>
#include <gossamer/reduce.h>

#include <ATen/ATen.h>

#include "core/csr.h"
#include "core/host.h"
#include "core/op.h"
#include "matrix/kept.h"

namespace gossamer {
namespace {

// f.operator()<T>() for the types that have the digits for it.
template <class F>
auto with_real(at::ScalarType dtype, const F& f) {
  TORCH_CHECK_TYPE(dtype == at::kFloat || dtype == at::kDouble,
                   "jacobian_pattern: x must be float32 or float64 for its columns to be told apart, not ", dtype);
  return dtype == at::kFloat ? f.template operator()<float>() : f.template operator()<double>();
}

template <class T>
kernels::Probes probes_of(int64_t cols, int64_t buckets, int64_t seed) {
  TORCH_CHECK_VALUE(cols >= 0 && buckets >= 1 && buckets <= (1 << 24), "probe: wants columns and buckets, not ", cols,
                    " and ", buckets);
  return kernels::Probes::of<T>(cols, buckets, static_cast<uint64_t>(seed));
}

std::tuple<Tensor, Tensor, Tensor> rows_forward(const Tensor& Y, const Tensor& product, const Tensor& open,
                                                int64_t cols, int64_t buckets, int64_t seed) {
  const int64_t m = product.dim() == 1 ? product.size(0) : -1;
  TORCH_CHECK_VALUE(Y.dim() == 2 && Y.size(1) == m, "probe_rows: Y ", shape_text(Y), " and product ",
                    shape_text(product), " must be (probes, m) and (m,)");
  TORCH_CHECK_TYPE(Y.scalar_type() == product.scalar_type(), "probe_rows: Y is ", Y.scalar_type(), " but product is ",
                   product.scalar_type());
  TORCH_CHECK_VALUE(open.dim() == 1, "probe_rows: open must have one dimension, not shape ", shape_text(open));
  const Tensor y = Y.cpu().contiguous(), p = product.cpu().contiguous(),
               rows = open.to(at::kCPU, at::kLong).contiguous();
  const int64_t count = rows.size(0);
  for (int64_t q = 0; q < count; ++q)
    TORCH_CHECK_VALUE(ptr<int64_t>(rows)[q] >= 0 && ptr<int64_t>(rows)[q] < m, "probe_rows: open[", q, "] is ",
                      ptr<int64_t>(rows)[q], ", outside the ", m, " rows");
  const Tensor status = host_integers(count, at::kChar);
  const auto places = with_real(Y.scalar_type(), [&]<class T> {
    const auto probes = probes_of<T>(cols, buckets, seed);
    TORCH_CHECK_VALUE(y.size(0) == probes.count(), "probe_rows: Y has ", y.size(0), " rows for ", probes.count(),
                      " probes");
    return kernels::peel_rows(torch_pool(), probes, m, ptr<T>(y), ptr<T>(p), count, ptr<int64_t>(rows),
                              mutable_ptr<int8_t>(status));
  });
  const Tensor i = host_integers(static_cast<int64_t>(places.size())), j = host_integers(i.size(0));
  for (size_t k = 0; k < places.size(); ++k)
    mutable_ptr<int64_t>(i)[k] = places[k].first, mutable_ptr<int64_t>(j)[k] = places[k].second;
  return {i.to(Y.device()), j.to(Y.device()), status.to(Y.device())};
}

const Op<decltype(ops::probe_rows)> rows_op{{
    .schema = "probe_rows(Tensor Y, Tensor product, Tensor open, int cols, int buckets, int seed) -> "
              "(Tensor rows, Tensor cols, Tensor status)",
    .forward = rows_forward,
    .constant = true,
    .meta = false,
}};

const Composites composites =
    Composites()
        .def("probe_count(int cols, int buckets, ScalarType dtype) -> int", ops::probe_count)
        .def("probe_seeds(int cols, int buckets, int seed, int first, int last, ScalarType dtype) -> Tensor",
             ops::probe_seeds)
        .def("probe_direction(int cols, int seed, ScalarType dtype) -> Tensor", ops::probe_direction)
        .def("probe_point(Tensor x, int seed, int k) -> Tensor", ops::probe_point)
        .def("jacobian_mismatch(Tensor[] pattern, Tensor values, Tensor v, Tensor product, SymInt[] shape) -> Tensor",
             ops::jacobian_mismatch);

}  // namespace

int64_t ops::probe_count(int64_t cols, int64_t buckets, at::ScalarType dtype) {
  return with_real(dtype, [&]<class T> { return probes_of<T>(cols, buckets, 0).count(); });
}

Tensor ops::probe_seeds(int64_t cols, int64_t buckets, int64_t seed, int64_t first, int64_t last,
                        at::ScalarType dtype) {
  TORCH_CHECK_VALUE(0 <= first && first <= last && last <= probe_count(cols, buckets, dtype),
                    "probe_seeds: there are no probes from ", first, " to ", last);
  const KeptTensors plain;  // with memory to write to, inside a transform, too
  const Tensor seeds = at::empty({last - first, cols}, dtype);
  with_real(dtype, [&]<class T> {
    kernels::probe_seeds(probes_of<T>(cols, buckets, seed), first, last, mutable_ptr<T>(seeds));
  });
  return seeds;
}

Tensor ops::probe_direction(int64_t cols, int64_t seed, at::ScalarType dtype) {
  const KeptTensors plain;  // with memory to write to, inside a transform, too
  const Tensor v = at::empty({cols}, at::kDouble);
  kernels::probe_direction(probes_of<double>(cols, 1, seed), mutable_ptr<double>(v));
  return v.to(dtype);
}

Tensor ops::probe_point(const Tensor& x, int64_t seed, int64_t k) {
  TORCH_CHECK_VALUE(x.dim() == 1, "probe_point: x must be (n,), not ", shape_text(x));
  const Tensor change =
      probe_direction(x.size(0), static_cast<int64_t>(static_cast<uint64_t>(seed) + 7919 * static_cast<uint64_t>(k)),
                      x.scalar_type())
          .to(x.device()) /
      16;
  const Tensor mean = ops::total(x.square()).div(x.numel()).sqrt(),
               size = at::where(mean.gt(0), mean, at::ones_like(mean));
  return at::where(x.eq(0), size * change, x + x * change);
}

std::tuple<Tensor, Tensor, Tensor> ops::probe_rows(const Tensor& Y, const Tensor& product, const Tensor& open,
                                                   int64_t cols, int64_t buckets, int64_t seed) {
  return rows_op(Y, product, open, cols, buckets, seed);
}

// |J v - product| ≤ ε^⅔ (Σ_j |J_ij v_j| + |product|) + 8 ε max_i of the same: forgiving in the last digits of what was
// added up, and in those of the largest row, which a row whose terms cancel has from others.
Tensor ops::jacobian_mismatch(TensorList pattern, const Tensor& values, const Tensor& v, const Tensor& product,
                              SymIntArrayRef shape) {
  const PatternTensors J = unpack("jacobian", pattern, shape, /*t=*/false);
  check_dense("jacobian", "values", values, J, J.nnz(), "entries");
  check_dense("jacobian", "v", v, J, J.cols, "columns");
  check_dense("jacobian", "product", product, J, J.rows, "rows");
  check_same_dtype("jacobian", "v", v, "values", values);
  check_same_dtype("jacobian", "product", product, "values", values);
  TORCH_CHECK_VALUE(values.dim() == 1 && v.dim() == 1 && product.dim() == 1, "jacobian: values, v and product are ",
                    "vectors, not ", shape_text(values), ", ", shape_text(v), " and ", shape_text(product));
  const double eps = values.scalar_type() == at::kDouble  ? 0x1p-52
                     : values.scalar_type() == at::kFloat ? 0x1p-23
                     : values.scalar_type() == at::kHalf  ? 0x1p-10
                                                          : 0x1p-7;
  const double share = std::pow(eps, 2.0 / 3.0), floor = 8 * eps;
  if (values.is_cpu()) {
    const Tensor a = values.contiguous(), x = v.contiguous(), y = product.contiguous();
    std::vector<int64_t> rows;
    launch("jacobian", a, J.indptr, [&]<class T, class I>(auto exec) {
      if constexpr (Host<decltype(exec)>)
        rows = kernels::mismatched_rows(exec, J.view<T, I>(a, 1), ptr<T>(x), ptr<T>(y), share, floor);
    });
    return at::tensor(rows, at::kLong);
  }
  const Tensor got = ops::spmm(pattern, values, v, shape, /*t=*/false);
  const Tensor size = ops::spmm(pattern, values.abs(), v.abs(), shape, /*t=*/false).add(product.abs());
  if (size.numel() == 0) return at::empty({0}, size.options().dtype(at::kLong));
  const Tensor allowed = size * share + floor * size.nan_to_num(0, 0, 0).max();
  const Tensor fits = (got - product).abs().le(allowed).logical_and(size.isfinite());  // false for NaN
  return fits.logical_not().nonzero().flatten();
}

}  // namespace gossamer
