// SPDX-License-Identifier: BSD-3-Clause
// A triangle of a square pattern: its level sets, integers only, and values masked to it, linear and its own adjoint.
#include <ATen/ops/empty.h>
#include <gossamer/kernels/triangular.h>
#include <torch/library.h>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

std::tuple<Tensor, Tensor> levels(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, bool upper) {
  check_square("levels", shape);
  const PatternTensors A = unpack("levels", {indptr, indices}, shape, /*t=*/false);
  const Tensor level_ptr = at::empty_symint({A.rows + 1}, indptr.options()),
               order = at::empty_symint({A.rows}, indptr.options());
  if (indptr.is_meta()) return {level_ptr, order};
  if (!indptr.is_cpu()) {
    const auto [p, o] = levels(indptr.cpu(), indices.cpu(), shape, upper);
    return {p.to(indptr.device()), o.to(indptr.device())};
  }
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    kernels::levels(A.view<I>(), upper, mutable_ptr<I>(level_ptr), mutable_ptr<I>(order));
  });
  return {level_ptr, order};
}

Tensor keep(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper, bool unit_diagonal) {
  const PatternTensors A = unpack("keep_triangle", pattern, shape, /*t=*/false);
  check_dense("keep_triangle", "values", values, A, A.nnz(), "entries");
  const Tensor out = at::empty_symint(values.sym_sizes(), values.options());
  if (values.is_meta()) return out;
  if (!values.is_cpu()) return keep(on_host(pattern), values.cpu(), shape, upper, unit_diagonal).to(values.device());
  const Tensor v = values.contiguous();
  const int64_t heads = values.size(0) ? values.numel() / values.size(0) : 1;
  with_types("keep_triangle", values.scalar_type(), A.indptr.scalar_type(), [&]<class T, class I> {
    kernels::keep_triangle(TorchThreads{}, A.view<I>(), {upper, unit_diagonal}, heads, ptr<T>(v), mutable_ptr<T>(out));
  });
  return out;
}

Tensor autograd(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper, bool unit_diagonal) {
  return differentiable(
      "keep_triangle", {values},
      [&](const variable_list& in) { return ops::keep_triangle(pattern, in[0], shape, upper, unit_diagonal); },
      [P = pattern.vec(), S = shape.vec(), upper, unit_diagonal](const Tensor& G, const variable_list&, const Tensor&,
                                                                 const Wanted&) {
        return variable_list{ops::keep_triangle(P, G, S, upper, unit_diagonal)};
      });
}

Tensor batched(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper, bool unit_diagonal) {
  const Batch batch("keep_triangle", pattern, {values});
  return batch.wrap(ops::keep_triangle(pattern, batch.at(values, 1), shape, upper, unit_diagonal), 1);
}

}  // namespace

std::tuple<Tensor, Tensor> ops::levels(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, bool upper) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("gossamer::levels", "").typed<decltype(levels)>();
  return op.call(indptr, indices, shape, upper);
}

Tensor ops::keep_triangle(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper,
                          bool unit_diagonal) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("gossamer::keep_triangle", "").typed<decltype(keep_triangle)>();
  return op.call(pattern, values, shape, upper, unit_diagonal);
}

TORCH_LIBRARY_FRAGMENT(gossamer, m) {
  m.def("levels(Tensor indptr, Tensor indices, SymInt[] shape, bool upper) -> (Tensor level_ptr, Tensor order)");
  m.def("keep_triangle(Tensor[] pattern, Tensor values, SymInt[] shape, bool upper, bool unit_diagonal) -> Tensor");
}
TORCH_LIBRARY_IMPL(gossamer, CPU, m) {
  m.impl("levels", levels);
  m.impl("keep_triangle", keep);
}
TORCH_LIBRARY_IMPL(gossamer, CUDA, m) {
  m.impl("levels", levels);
  m.impl("keep_triangle", keep);
}
TORCH_LIBRARY_IMPL(gossamer, Meta, m) {
  m.impl("levels", levels);
  m.impl("keep_triangle", keep);
}
TORCH_LIBRARY_IMPL(gossamer, Autograd, m) {
  m.impl("keep_triangle", autograd);
}
TORCH_LIBRARY_IMPL(gossamer, FuncTorchBatched, m) {
  m.impl("keep_triangle", batched);
}

}  // namespace gossamer
