// SPDX-License-Identifier: BSD-3-Clause
// P = the softmax of each row of A over its stored entries.        dA = P ∘ (G − rowsum(P ∘ G))
//
// The Jacobian of a row is diag(p) − p pᵀ: symmetric, so forward mode is the same expression.
#include <gossamer/kernels/softmax.h>

#include <ATen/ATen.h>

#include <gossamer/reduce.h>
#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

Tensor forward(TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  const PatternTensors A = unpack("row_softmax", pattern, shape, /*t=*/false);
  check_dense("row_softmax", "values", values, A, A.nnz(), "entries");
  TORCH_CHECK_VALUE(values.dim() <= 2, "row_softmax: values must be (nnz,) or (nnz, H), not ", shape_text(values));
  const Tensor P = empty_result(values.sym_sizes(), values.options());
  launch("row_softmax", values, A.indptr, [&]<class T, class I>(auto exec) {
    const Tensor v = values.contiguous();
    const auto M = A.view<T, I>(v, values.dim() == 2 ? values.size(1) : 1);
    if constexpr (Host<decltype(exec)>) {
      kernels::row_softmax(exec, M, mutable_ptr<T>(P));
    } else {
      const Tensor scratch = scratch_for(P, 2 * kernels::piece_places(M.nnz) * M.heads);
      kernels::row_softmax(exec, M, mutable_ptr<T>(P), mutable_ptr<Sum<T>>(scratch));
    }
  });
  return P;
}

Tensor jacobian_times(TensorList pattern, const Tensor& P, const Tensor& G, SymIntArrayRef shape) {
  const Tensor PG = P * G;
  return PG - P * ops::spread(pattern, ops::row_sum(pattern, PG, shape), shape, /*cols=*/false);
}

Tensor autograd(TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return differentiable(
      "row_softmax", {values}, [&](const variable_list& in) { return ops::row_softmax(pattern, in[0], shape); },
      [A = pattern.vec(), S = shape.vec()](const Tensor& G, const variable_list&, const Tensor& P, const Wanted&) {
        return variable_list{jacobian_times(A, P, G, S)};
      },
      [&](const variable_list&, const variable_list& moving, const Tensor& P) {
        return jacobian_times(pattern, P, moving[0], shape);
      });
}

Tensor batched(TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return more_heads("row_softmax", pattern, values,
                    [&](const Tensor& v) { return ops::row_softmax(pattern, v, shape); });
}

const Op<decltype(ops::row_softmax)> op{{
    .schema = "row_softmax(Tensor[] pattern, Tensor values, SymInt[] shape) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
}};

}  // namespace

Tensor ops::row_softmax(TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return op(pattern, values, shape);
}

SparseMatrix SparseMatrix::row_softmax() const {
  return with_values(ops::row_softmax(pattern().tensors(), values(), pattern().sym_shape()));
}

}  // namespace gossamer
