// SPDX-License-Identifier: BSD-3-Clause
// SparseMatrix's methods that are functions elsewhere: each is that function, on this matrix.
#include <gossamer/elementwise.h>
#include <gossamer/products.h>
#include <gossamer/reduce.h>
#include <gossamer/sparse_matrix.h>
#include <gossamer/structure.h>

namespace gossamer {

SparseMatrix SparseMatrix::matmul(const SparseMatrix& B) const {
  return spgemm(*this, B);
}
SparseMatrix SparseMatrix::hadamard(const SparseMatrix& B) const {
  return gossamer::hadamard(*this, B);
}

Tensor SparseMatrix::diagonal(int64_t k) const {
  return gossamer::diagonal(*this, k);
}
Tensor SparseMatrix::trace() const {
  return gossamer::trace(*this);
}
SparseMatrix SparseMatrix::tril(int64_t k) const {
  return gossamer::tril(*this, k);
}
SparseMatrix SparseMatrix::triu(int64_t k) const {
  return gossamer::triu(*this, k);
}

Tensor SparseMatrix::sum(std::optional<int64_t> dim) const {
  return gossamer::sum(*this, dim);
}
Tensor SparseMatrix::mean(std::optional<int64_t> dim) const {
  return gossamer::mean(*this, dim);
}
Tensor SparseMatrix::amax(std::optional<int64_t> dim) const {
  return gossamer::amax(*this, dim);
}
Tensor SparseMatrix::norm() const {
  return gossamer::norm(*this);
}
SparseMatrix SparseMatrix::row_softmax() const {
  return gossamer::row_softmax(*this);
}

SparseMatrix SparseMatrix::abs() const {
  return gossamer::abs(*this);
}
SparseMatrix SparseMatrix::pow(double p) const {
  return gossamer::pow(*this, p);
}
SparseMatrix SparseMatrix::scale_rows(const Tensor& d) const {
  return gossamer::scale_rows(*this, d);
}
SparseMatrix SparseMatrix::scale_cols(const Tensor& d) const {
  return gossamer::scale_cols(*this, d);
}
SparseMatrix SparseMatrix::map(const std::function<Tensor(const Tensor&)>& f) const {
  return gossamer::map(*this, f);
}

Tensor SparseMatrix::index(int64_t i, int64_t j) const {
  return entry(*this, i, j);
}
SparseMatrix SparseMatrix::index(const std::optional<Tensor>& rows, const std::optional<Tensor>& cols) const {
  return submatrix(*this, rows, cols);
}
SparseMatrix SparseMatrix::index(const at::indexing::Slice& rows, const at::indexing::Slice& cols) const {
  return slice(*this, rows, cols);
}

}  // namespace gossamer
