// SPDX-License-Identifier: BSD-3-Clause
// Numbers times a matrix: the pattern stays.
#pragma once
#include <c10/core/Scalar.h>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {
// values s and values / s, types promoted as torch does. s: 0-dim, or (H,).
Tensor times(const Tensor& values, const Tensor& s);
Tensor divide(const Tensor& values, const Tensor& s);
}  // namespace ops

SparseMatrix operator-(const SparseMatrix& A);
// s: a number, a 0-dim tensor, or (H,), one number a head; or a dense matrix, as compare.h's multiply takes it.
// Differentiable in both.
SparseMatrix operator*(const SparseMatrix& A, const Tensor& s);
SparseMatrix operator*(const Tensor& s, const SparseMatrix& A);
SparseMatrix operator*(const SparseMatrix& A, const at::Scalar& s);
SparseMatrix operator*(const at::Scalar& s, const SparseMatrix& A);
SparseMatrix operator/(const SparseMatrix& A, const Tensor& s);
SparseMatrix operator/(const SparseMatrix& A, const at::Scalar& s);

}  // namespace gossamer
