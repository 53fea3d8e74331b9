// SPDX-License-Identifier: BSD-3-Clause
// Sparse with sparse: products, sums, entrywise products.
#pragma once
#include <optional>

#include "ops.h"
#include "sparse_matrix.h"

namespace gossamer {

namespace ops {

// Which operand of a sparse product is transposed: C = A B, A Bᵀ or Aᵀ B.
enum ProductForm : int64_t { nn = 0, nt = 1, tn = 2 };

// The values of the product on pattern C. Patterns as in ops.h; A must bring its transpose for tn, or it is built.
Tensor spgemm(TensorList A, const Tensor& a, SymIntArrayRef shape_A, TensorList B, const Tensor& b,
              SymIntArrayRef shape_B, TensorList C, int64_t form);

// {indptr, indices} of A B.
std::tuple<Tensor, Tensor> spgemm_pattern(TensorList A, at::IntArrayRef shape_A, TensorList B, at::IntArrayRef shape_B);

// values laid out on another pattern: out[p] = values[from[p]] or 0 where from[p] < 0; `to` is the way back.
Tensor place(const Tensor& values, const Tensor& from, const Tensor& to);

// place(a, from_a, to_a) + place(b, from_b, to_b), in one pass.
Tensor place_sum(const Tensor& a, const Tensor& from_a, const Tensor& to_a, const Tensor& b, const Tensor& from_b,
                 const Tensor& to_b);

// Σ u v, and s u for a 0-dim s: their sums are bitwise the same for every thread count.
Tensor dot(const Tensor& u, const Tensor& v);
Tensor scale(const Tensor& u, const Tensor& s);

// The union (or intersection) of two patterns of one shape:
// {indptr, indices, from_A, to_A, from_B, to_B}, the maps as `place` takes them.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> merge(TensorList A, TensorList B, at::IntArrayRef shape,
                                                                 bool intersect);

}  // namespace ops

// A B, on its own pattern or only on the entries of `mask`.
SparseMatrix spgemm(const SparseMatrix& A, const SparseMatrix& B, const std::optional<Pattern>& mask = {});

// a b for any mix of dense and sparse.
inline SparseMatrix matmul(const SparseMatrix& A, const SparseMatrix& B) {
  return spgemm(A, B);
}
inline Tensor matmul(const SparseMatrix& A, const Tensor& X) {
  return A.matmul(X);
}
inline Tensor matmul(const Tensor& X, const SparseMatrix& A) {
  return A.rmatmul(X);
}

// αA + βB on the union of the patterns; α and β may be tensors that want a gradient.
SparseMatrix spadd(const SparseMatrix& A, const SparseMatrix& B, const Tensor& alpha, const Tensor& beta);
SparseMatrix operator+(const SparseMatrix& A, const SparseMatrix& B);
SparseMatrix operator-(const SparseMatrix& A, const SparseMatrix& B);

// The entrywise product, on the intersection of the patterns.
SparseMatrix hadamard(const SparseMatrix& A, const SparseMatrix& B);

}  // namespace gossamer
