// SPDX-License-Identifier: BSD-3-Clause
// Two matrices entry by entry beyond sums and products: the larger, the smaller, quotients and comparisons.
#pragma once
#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {
// A ∘ X on A's pattern for a dense X that has A's shape, (rows, cols, [H]), or is broadcast to it: (cols,), (1, cols),
// (rows, 1).
Tensor times_dense(TensorList pattern, const Tensor& values, const Tensor& X, SymIntArrayRef shape);
}  // namespace ops

// On the union of the patterns. Where both are equal, each gets half of the gradient, as in torch.
SparseMatrix maximum(const SparseMatrix& A, const SparseMatrix& B);
SparseMatrix minimum(const SparseMatrix& A, const SparseMatrix& B);

// A ∘ X on A's pattern; X as above.
SparseMatrix multiply(const SparseMatrix& A, const Tensor& X);

// A[i, j] / B[i, j] on A's pattern, every entry of which B must store.
SparseMatrix operator/(const SparseMatrix& A, const SparseMatrix& B);

// Booleans on the union of the patterns. The other comparisons hold for two zeros, so that they are dense:
// A.to_dense().eq(B.to_dense()).
SparseMatrix ne(const SparseMatrix& A, const SparseMatrix& B);
SparseMatrix lt(const SparseMatrix& A, const SparseMatrix& B);
SparseMatrix gt(const SparseMatrix& A, const SparseMatrix& B);

}  // namespace gossamer
