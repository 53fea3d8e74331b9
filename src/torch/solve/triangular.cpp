// SPDX-License-Identifier: BSD-3-Clause
// x = T⁻¹ b, or T⁻ᵀ b if t, with T the named triangle of L; the derivative is that of every linear solve. Also the
// level sets of a triangle, integers only, and values masked to a triangle, which is linear and its own adjoint.
#include <ATen/ATen.h>
#include <gossamer/kernels/triangular.h>
#include <gossamer/linalg.h>

#include "core/csr.h"
#include "core/host.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"
#include "solve/linear_solve.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

std::tuple<Tensor, Tensor> levels(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, bool upper) {
  check_square("levels", shape);
  const PatternTensors A = host_pattern("levels", {indptr, indices}, shape);
  const Tensor level_ptr = empty_result({A.rows + 1}, indptr.options()),
               order = empty_result({A.rows}, indptr.options());
  if (indptr.is_meta()) return {level_ptr, order};
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    kernels::levels(A.view<I>(), upper, mutable_ptr<I>(level_ptr), mutable_ptr<I>(order));
  });
  return {level_ptr, order};
}

// The level of each row, found by the rows themselves, and then sorted. No look.
std::tuple<Tensor, Tensor> levels_on_device(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape,
                                            bool upper) {
  const KeptResults kept;
  check_square("levels", shape);
  const PatternTensors A = unpack("levels", {indptr, indices}, shape, /*t=*/false);
  const int64_t n = A.rows.expect_int();
  const auto type = indptr.scalar_type();
  const Tensor level = at::empty({n}, indptr.options()), ready = at::zeros({n}, indptr.options().dtype(at::kInt)),
               tickets = at::zeros({1}, indptr.options().dtype(at::kLong));
  with_index_type<void>(type, [&]<class, class I> {
    auto* counter = reinterpret_cast<unsigned long long*>(mutable_ptr<int64_t>(tickets));
    kernels::find_levels(stream_of("levels", indptr.device()), A.view<I>(), upper, mutable_ptr<I>(level),
                         {counter, mutable_ptr<int>(ready), nullptr});
  });
  const auto [sorted, order] = level.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  return {at::searchsorted(sorted, at::arange(n + 1, indptr.options())).to(type), order.to(type)};
}

Tensor keep(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper, bool unit_diagonal) {
  const PatternTensors A = unpack("keep_triangle", pattern, shape, /*t=*/false);
  check_dense("keep_triangle", "values", values, A, A.nnz(), "entries");
  const Tensor out = empty_result(values.sym_sizes(), values.options());
  launch("keep_triangle", values, A.indptr, [&]<class T, class I>(auto exec) {
    const Tensor v = values.contiguous();
    const int64_t heads = values.size(0) ? values.numel() / values.size(0) : 1;
    kernels::keep_triangle(exec, A.view<I>(), {upper, unit_diagonal}, heads, ptr<T>(v), mutable_ptr<T>(out));
  });
  return out;
}

Tensor keep_autograd(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper, bool unit_diagonal) {
  return differentiable(
      "keep_triangle", {values},
      [&](const variable_list& in) { return ops::keep_triangle(pattern, in[0], shape, upper, unit_diagonal); },
      [P = pattern.vec(), S = shape.vec(), upper, unit_diagonal](const Tensor& G, const variable_list&, const Tensor&,
                                                                 const Wanted&) {
        return variable_list{ops::keep_triangle(P, G, S, upper, unit_diagonal)};
      });
}

Tensor keep_batched(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper, bool unit_diagonal) {
  return more_heads("keep_triangle", pattern, values,
                    [&](const Tensor& v) { return ops::keep_triangle(pattern, v, shape, upper, unit_diagonal); });
}

constexpr const char* op_name = "solve_triangular";

void check(const PatternTensors& A, const Tensor& values, const Tensor& b, TensorList levels) {
  check_dense(op_name, "values", values, A, A.nnz(), "entries");
  check_dense(op_name, "b", b, A, A.rows, "rows");
  check_same_dtype(op_name, "b", b, "values", values);
  TORCH_CHECK_VALUE(values.dim() <= 2, op_name, ": values must be (nnz,) or (nnz, H), not ", shape_text(values));
  const bool heads = values.dim() == 2;
  TORCH_CHECK_VALUE(heads || b.dim() <= 2, op_name, ": b must be (n,) or (n, k), not ", shape_text(b));
  TORCH_CHECK_VALUE(!heads || (b.dim() >= 2 && b.dim() <= 3 && b.sym_size(1) == values.sym_size(1)), op_name,
                    ": values ", shape_text(values), " need b of shape (n, H) or (n, H, k), not ", shape_text(b));
  TORCH_CHECK_VALUE(levels.empty() || levels.size() == 2, op_name, ": levels are {level_ptr, order} or none, not ",
                    levels.size(), " tensors");
  for (size_t k = 0; k < levels.size(); ++k) {
    const at::Device device = k == 0 && A.indptr.is_cuda() ? at::kCPU : A.indptr.device();  // see Pattern::levels
    TORCH_CHECK_VALUE(levels[k].scalar_type() == A.indptr.scalar_type() && levels[k].device() == device &&
                          levels[k].dim() == 1 && levels[k].sym_size(0) == A.rows + (k == 0 ? 1 : 0),
                      op_name, ": the levels are of another matrix");
  }
}

[[noreturn]] void throw_no_pivot(const PatternTensors& A, int64_t row) {
  const Tensor entries = A.indices.slice(0, A.indptr[row].item<int64_t>(), A.indptr[row + 1].item<int64_t>());
  const bool stored = entries.eq(row).any().item<bool>();
  throw_singular(op_name, "row ", row, stored ? " has a zero on the diagonal" : " has no diagonal entry");
}

// The first row without a pivot, -1 if there is none. Reading it is the one wait for the device that a solve takes.
template <class T, class I>
int64_t solve_on_device(Cuda exec, const Csr<T, I>& L, Triangle triangle, const Levels<I>& levels, const Tensor& b,
                        int64_t width, const Tensor& x) {
  const Tensor numbers = at::zeros({2}, b.options().dtype(at::kLong));
  numbers.select(0, 1).fill_(L.rows);
  auto* counters = reinterpret_cast<unsigned long long*>(mutable_ptr<int64_t>(numbers));
  if (levels.order && levels.count(L.rows) * kernels::rows_worth_a_launch <= L.rows) {
    kernels::solve_triangular(exec, L, triangle, levels, ptr<T>(b), b.stride(0), width, mutable_ptr<T>(x),
                              counters + 1);
  } else {
    const Tensor ready = at::zeros({L.rows * ((L.heads * width + 31) / 32)}, b.options().dtype(at::kInt));
    kernels::solve_triangular(exec, L, triangle, ptr<T>(b), b.stride(0), width, mutable_ptr<T>(x),
                              {counters, mutable_ptr<int>(ready), counters + 1});
  }
  if (triangle.unit_diagonal) return -1;  // nothing is divided by
  const int64_t bad = numbers[1].template item<int64_t>();
  return bad == L.rows ? -1 : bad;
}

Tensor forward(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, TensorList levels,
               bool upper, bool unit_diagonal, bool t) {
  check_square(op_name, shape);
  const PatternTensors A = unpack(op_name, pattern, shape, t);
  check(A, values, b, levels);
  const Tensor x = empty_result(b.sym_sizes(), b.options());
  if (b.is_meta()) return x;
  // 16-bit numbers are solved in float32: a row of x is read by later rows and must not be rounded before.
  const auto dtype = b.element_size() == 2 ? at::kFloat : b.scalar_type();
  const Tensor v = values.to(dtype).contiguous(), from = with_compact_rows(b.to(dtype)),
               to = dtype == b.scalar_type() ? x : at::empty(b.sizes(), from.options());
  const bool heads = values.dim() == 2;
  const int64_t H = heads ? values.size(1) : 1, width = b.dim() == heads + 2 ? b.size(-1) : 1;
  int64_t bad = -1;
  launch(op_name, from, A.indptr, [&]<class T, class I>(auto exec) {
    Levels<I> known;
    if (!levels.empty()) known = {ptr<I>(levels[0]), ptr<I>(levels[1]), t};
    if constexpr (sizeof(T) < 4) {
      return;
    } else if constexpr (Host<decltype(exec)>) {
      bad = kernels::solve_triangular(exec, A.view<T, I>(v, H), {upper != t, unit_diagonal}, known, ptr<T>(from),
                                      from.stride(0), width, mutable_ptr<T>(to));
    } else {
      bad = solve_on_device(exec, A.view<T, I>(v, H), {upper != t, unit_diagonal}, known, from, width, to);
    }
  });
  if (bad >= 0) throw_no_pivot(A, bad);
  if (!to.is_same(x)) x.copy_(to);
  return x;
}

LinearSolve solve_of(TensorList pattern, SymIntArrayRef shape, TensorList levels, bool upper, bool unit_diagonal,
                     bool t) {
  const auto P = pattern.vec(), kept_levels = levels.vec();
  const auto S = shape.vec();
  return {op_name,
          P,
          S,
          t,
          [=](const Tensor& v, const Tensor& b, const Tensor&, bool transposed) {
            return ops::solve_triangular(P, v, b, S, kept_levels, upper, unit_diagonal, transposed);
          },
          [=](const Tensor& v) { return ops::keep_triangle(P, v, S, upper, unit_diagonal); }};
}

Tensor autograd(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, TensorList levels,
                bool upper, bool unit_diagonal, bool t) {
  return differentiable_solve(solve_of(pattern, shape, levels, upper, unit_diagonal, t), values, b);
}

Tensor batched(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, TensorList levels,
               bool upper, bool unit_diagonal, bool t) {
  return batched_solve(solve_of(pattern, shape, levels, upper, unit_diagonal, t), values, b);
}

const Op<decltype(ops::levels)> levels_op{{
    .schema = "levels(Tensor indptr, Tensor indices, SymInt[] shape, bool upper) -> (Tensor level_ptr, Tensor order)",
    .forward = levels,
    .on_device = levels_on_device,
}};
const Op<decltype(ops::keep_triangle)> keep_op{{
    .schema =
        "keep_triangle(Tensor[] pattern, Tensor values, SymInt[] shape, bool upper, bool unit_diagonal) -> Tensor",
    .forward = keep,
    .autograd = keep_autograd,
    .batched = keep_batched,
}};
const Op<decltype(ops::solve_triangular)> solve_op{{
    .schema = "solve_triangular(Tensor[] pattern, Tensor values, Tensor b, SymInt[] shape, Tensor[] levels, bool "
              "upper=False, bool unit_diagonal=False, bool t=False) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .full_precision = true,
}};

}  // namespace

std::tuple<Tensor, Tensor> ops::levels(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, bool upper) {
  return levels_op(indptr, indices, shape, upper);
}

Tensor ops::keep_triangle(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper,
                          bool unit_diagonal) {
  return keep_op(pattern, values, shape, upper, unit_diagonal);
}

Tensor ops::solve_triangular(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
                             TensorList levels, bool upper, bool unit_diagonal, bool t) {
  return solve_op(pattern, values, b, shape, levels, upper, unit_diagonal, t);
}

Tensor linalg::solve_triangular(const SparseMatrix& L, const Tensor& b, bool upper, bool unit_diagonal,
                                bool transpose) {
  if (const auto A = L.original())  // the upper triangle of Aᵀ is the transpose of the lower one of A
    return solve_triangular(*A, b, !upper, unit_diagonal, !transpose);
  const Pattern& P = L.pattern();
  check_square(op_name, P.sym_shape());  // before the levels, whose error would name another op
  P.check_simple(op_name);
  // A device needs none, and would have to tell the host where they begin: it uses those that were asked for.
  const auto levels = L.values().is_cuda() ? P.levels_at_hand(upper) : P.levels(upper);
  auto tensors = P.tensors_for({b, L.values()}, transpose);
  if (b.dim() == 1) tensors = P.with_runs(std::move(tensors));
  return ops::solve_triangular(tensors, L.values(), b, P.sym_shape(), levels, upper, unit_diagonal, transpose);
}

}  // namespace gossamer
