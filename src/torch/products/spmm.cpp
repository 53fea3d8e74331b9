// SPDX-License-Identifier: BSD-3-Clause
// Y = A X, or Aᵀ X if t.        dA = sddmm(A, G, X), operands swapped if t        dX = spmm(A, G, !t)
// (Complex: with the conjugates of X and A.)
#include <ATen/ATen.h>
#include <gossamer/kernels/spmm.h>
#include <gossamer/products.h>

#include "core/batch.h"
#include "core/bilinear.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

// A is what multiplies X: the transpose if t.
void check(const PatternTensors& A, const Tensor& values, const Tensor& X, bool t) {
  check_dense("spmm", "values", values, A, A.nnz(), "entries", /*or_integers=*/true);
  check_dense("spmm", "X", X, A, A.cols, t ? "rows" : "columns", /*or_integers=*/true);
  check_same_dtype("spmm", "X", X, "values", values);
  TORCH_CHECK_VALUE(values.dim() <= 2, "spmm: values must be (nnz,) or (nnz, H), not ", shape_text(values));
  const bool heads = values.dim() == 2;
  TORCH_CHECK_VALUE(heads || X.dim() <= 2, "spmm: X must be (n,) or (n, d), not ", shape_text(X));
  TORCH_CHECK_VALUE(!heads || (X.dim() >= 2 && X.dim() <= 3 && X.sym_size(1) == values.sym_size(1)), "spmm: values ",
                    shape_text(values), " need X of shape (n, H) or (n, H, d), not ", shape_text(X));
}

// Integers have no kernel: each entry's product, added to its row by torch, exact in any order.
Tensor integer_product(const PatternTensors& A, const Tensor& values, const Tensor& X, SymIntArrayRef size) {
  Tensor v = A.perm.defined() ? values.index_select(0, A.perm) : values;
  if (X.dim() > v.dim()) v = v.unsqueeze(-1);
  const Tensor rows = ops::row_indices(A.indptr, A.indices), products = X.index_select(0, A.indices) * v;
  return at::zeros_symint(size, X.options()).index_add(0, rows, products);
}

Tensor forward(TensorList pattern, const Tensor& values, const Tensor& X, SymIntArrayRef shape, bool t) {
  if (values.is_complex()) {
    check_same_dtype("spmm", "X", X, "values", values);
    return bilinear(values, X, [&](const Tensor& v, const Tensor& x) { return forward(pattern, v, x, shape, t); });
  }
  const PatternTensors stored = unpack("spmm", pattern, shape, /*t=*/false);
  const PatternTensors A = t ? unpack("spmm", pattern, shape, t) : stored;
  check(A, values, X, t);
  auto size = X.sym_sizes().vec();
  size[0] = A.rows;
  if (is_integral(values)) return integer_product(A, values, X, size);
  const Tensor Y = empty_result(size, X.options());
  launch("spmm", X, A.indptr, [&]<class T, class I>(auto exec) {
    const Tensor x = with_compact_rows(X), v = values.contiguous();
    const bool heads = values.dim() == 2;
    const int64_t H = heads ? values.size(1) : 1, width = X.dim() == heads + 2 ? X.size(-1) : 1;
    const auto M = A.view<T, I>(v, H);
    if constexpr (!Host<decltype(exec)>) {
      const Tensor scratch = scratch_for(Y, kernels::piece_places(M.nnz) * H * width);
      return kernels::spmm(exec, M, ptr<T>(x), x.stride(0), width, mutable_ptr<T>(Y), mutable_ptr<Sum<T>>(scratch));
    } else {
      // One vector times the transpose: parts of the stored matrix scatter what they have, which is faster than reading
      // the values through the transpose's permutation.
      if constexpr (std::same_as<T, Sum<T>>)
        if (const auto S = stored.view<T, I>(v, 1); t && H * width == 1 && kernels::scatter_parts(S) > 1) {
          const Tensor sums = scratch_for(Y, (kernels::scatter_parts(S) - 1) * S.cols);
          return kernels::spmv_transposed(exec, S, ptr<T>(x), x.stride(0), mutable_ptr<T>(Y), mutable_ptr<T>(sums));
        }
      kernels::spmm(exec, M, ptr<T>(x), x.stride(0), width, mutable_ptr<T>(Y));
    }
  });
  return Y;
}

Tensor autograd(TensorList pattern, const Tensor& values, const Tensor& X, SymIntArrayRef shape, bool t) {
  return differentiable(
      "spmm", {values, X}, [&](const variable_list& in) { return ops::spmm(pattern, in[0], in[1], shape, t); },
      [P = pattern.vec(), S = shape.vec(), t](const Tensor& G, const variable_list& in, const Tensor&,
                                              const Wanted& wanted) {
        variable_list grads(2);
        const Tensor kept = in[1].conj();
        const Tensor left = with_columns(in[0], t ? kept : G), right = with_columns(in[0], t ? G : kept);
        if (wanted[0]) grads[0] = ops::sddmm(P, left, right, S);
        if (wanted[1]) grads[1] = ops::spmm(P, in[0].conj(), G, S, !t);
        return grads;
      });
}

Tensor batched(TensorList pattern, const Tensor& values, const Tensor& X, SymIntArrayRef shape, bool t) {
  return heads_or_columns(
      "spmm", pattern, values, X, /*per_head=*/{},
      [&](const Tensor& v, const Tensor& x, const Tensor&) { return ops::spmm(pattern, v, x, shape, t); });
}

const Op<decltype(ops::spmm)> op{{
    .schema = "spmm(Tensor[] pattern, Tensor values, Tensor X, SymInt[] shape, bool t=False) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .autocast = true,
}};

}  // namespace

Tensor ops::spmm(TensorList pattern, const Tensor& values, const Tensor& X, SymIntArrayRef shape, bool t) {
  return op(pattern, values, X, shape, t);
}

Tensor spmm(const SparseMatrix& A, const Tensor& X, bool transpose) {
  if (const auto original = A.original()) return spmm(*original, X, !transpose);
  const auto [v, x] = without_integers(A.values(), X);
  auto tensors = A.pattern().tensors_for({x}, transpose);
  if (x.dim() == 1 || (x.dim() == 2 && x.size(1) <= 4)) tensors = A.pattern().with_runs(std::move(tensors));
  return ops::spmm(tensors, v, x, A.pattern().sym_shape(), transpose);
}

}  // namespace gossamer
