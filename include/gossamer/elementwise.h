// SPDX-License-Identifier: BSD-3-Clause
// Functions of the values that keep zero, so that the pattern stays: f(0) = 0 for what is not stored.
#pragma once
#include <utility>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

SparseMatrix operator-(const SparseMatrix& A);
// s: a number, a 0-dim tensor, or (H,), one number a head. Differentiable in both.
SparseMatrix operator*(const SparseMatrix& A, const Tensor& s);
SparseMatrix operator*(const Tensor& s, const SparseMatrix& A);
SparseMatrix operator*(const SparseMatrix& A, double s);
SparseMatrix operator*(double s, const SparseMatrix& A);
SparseMatrix operator/(const SparseMatrix& A, const Tensor& s);
SparseMatrix operator/(const SparseMatrix& A, double s);

SparseMatrix abs(const SparseMatrix& A);
SparseMatrix pow(const SparseMatrix& A, double p);                // p > 0
SparseMatrix scale_rows(const SparseMatrix& A, const Tensor& d);  // diag(d) A; d (rows,), or (rows, H)
SparseMatrix scale_cols(const SparseMatrix& A, const Tensor& d);  // A diag(d); d (cols,), or (cols, H)

// f of the values; f should give 0 for 0, which is what the entries that are not stored stay.
template <class F>
SparseMatrix map(const SparseMatrix& A, const F& f) {
  return A.with_values(f(A.values()));
}

}  // namespace gossamer
