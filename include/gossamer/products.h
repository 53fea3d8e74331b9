// SPDX-License-Identifier: BSD-3-Clause
// Products with dense and with sparse matrices, sums, entrywise products.
#pragma once
#include <c10/core/Scalar.h>

#include <optional>
#include <variant>

#include <gossamer/elementwise.h>
#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {

// Y = A X, or Aᵀ X if t. values (nnz,): X (n,) or (n, d). values (nnz, H): X (n, H) or (n, H, d), one matrix a head.
Tensor spmm(TensorList pattern, const Tensor& values, const Tensor& X, SymIntArrayRef shape, bool t);

// (U Vᵀ) on the pattern. U (rows,), V (cols,) or U (rows, d), V (cols, d): values (nnz,).
// U (rows, H, d), V (cols, H, d): values (nnz, H).
Tensor sddmm(TensorList pattern, const Tensor& U, const Tensor& V, SymIntArrayRef shape);

// Which operand of a sparse product is transposed: C = A B, A Bᵀ or Aᵀ B.
enum ProductForm : int64_t { nn = 0, nt = 1, tn = 2 };

// The values of the product on pattern C. Patterns of one index type. On a device A must bring its transpose for tn, or
// it is built.
Tensor spgemm(TensorList A, const Tensor& a, SymIntArrayRef shape_A, TensorList B, const Tensor& b,
              SymIntArrayRef shape_B, TensorList C, SymIntArrayRef shape_C, int64_t form);

// {indptr, indices} of A B.
std::tuple<Tensor, Tensor> spgemm_pattern(TensorList A, at::IntArrayRef shape_A, TensorList B, at::IntArrayRef shape_B);

// Between the n entries of a whole and a part of them, entry q of the part being entry at[q] of the whole; `at`
// ascends.
Tensor pick(const Tensor& whole, const Tensor& at);                 // whole[at[q]]
Tensor place(const Tensor& part, const Tensor& at, c10::SymInt n);  // part[q] at at[q], 0 elsewhere
Tensor place_sum(const Tensor& a, const Tensor& at_a, const Tensor& b, const Tensor& at_b, c10::SymInt n);

// Σ u v, and s u for a 0-dim s: their sums are bitwise the same for every thread count.
Tensor dot(const Tensor& u, const Tensor& v);
Tensor scale(const Tensor& u, const Tensor& s);

// The union (or intersection) of two patterns of one shape:
// {indptr, indices, at_A, at_B}, the maps from A and B into the union, or from the intersection into A and B.
std::tuple<Tensor, Tensor, Tensor, Tensor> merge(TensorList A, TensorList B, at::IntArrayRef shape, bool intersect);

// A + B of two patterns that have not met: the union as above, and the sum on it. The maps are empty unless a
// derivative will need them; then, or on a device, this is merge and place_sum.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> first_sum(TensorList A, const Tensor& a, TensorList B,
                                                             const Tensor& b, at::IntArrayRef shape);

}  // namespace ops

// Y = A X, or Aᵀ X.
Tensor spmm(const SparseMatrix& A, const Tensor& X, bool transpose = false);
// (U Vᵀ) on the pattern.
SparseMatrix sddmm(const Pattern& pattern, const Tensor& U, const Tensor& V);

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

// A number, or a tensor of one (with heads, of one a head), which may want a gradient.
using Number = std::variant<at::Scalar, Tensor>;

// αA + βB on the union of the patterns: spadd(A, B), spadd(A, B, 2, -1), spadd(A, B, alpha).
SparseMatrix spadd(const SparseMatrix& A, const SparseMatrix& B, const Number& alpha = at::Scalar(1),
                   const Number& beta = at::Scalar(1));
SparseMatrix operator+(const SparseMatrix& A, const SparseMatrix& B);
SparseMatrix operator-(const SparseMatrix& A, const SparseMatrix& B);

// The entrywise product, on the intersection of the patterns.
SparseMatrix hadamard(const SparseMatrix& A, const SparseMatrix& B);
inline SparseMatrix operator*(const SparseMatrix& A, const SparseMatrix& B) {
  return hadamard(A, B);
}

}  // namespace gossamer
