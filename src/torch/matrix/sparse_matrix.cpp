// SPDX-License-Identifier: BSD-3-Clause
#include <gossamer/products.h>
#include <gossamer/sparse_matrix.h>

#include <ATen/ATen.h>

#include <cmath>
#include <ostream>
#include <sstream>

#include "core/csr.h"

namespace gossamer {

SparseMatrix::SparseMatrix() : values_(at::zeros({0})) {}

SparseMatrix::SparseMatrix(Pattern pattern, Tensor values) : pattern_(std::move(pattern)), values_(std::move(values)) {
  TORCH_CHECK_VALUE(values_.dim() >= 1 && values_.dim() <= 2 && values_.size(0) == nnz(),
                    "SparseMatrix: values has shape ", shape_text(values_), " but the pattern has ", nnz(), " entries");
  TORCH_CHECK_VALUE(values_.device() == pattern_.device(), "SparseMatrix: values are on ", values_.device(),
                    " but the pattern is on ", pattern_.device());
}

SparseMatrix::SparseMatrix(Tensor indptr, Tensor indices, Tensor values, Shape shape, bool check)
    : SparseMatrix(Pattern(std::move(indptr), std::move(indices), shape, check), std::move(values)) {}

SparseMatrix& SparseMatrix::requires_grad_(bool on) & {
  values().requires_grad_(on);
  return *this;
}

SparseMatrix SparseMatrix::requires_grad_(bool on) && {
  values().requires_grad_(on);
  return std::move(*this);
}

std::optional<SparseMatrix> SparseMatrix::grad() const {
  if (!values().grad().defined()) return std::nullopt;
  return with_values(values().grad());
}

SparseMatrix SparseMatrix::to(at::Device device) const {
  return SparseMatrix(pattern().to(device), values().to(device));
}

SparseMatrix SparseMatrix::with_index_type(at::ScalarType type) const {
  return SparseMatrix(pattern().with_index_type(type), values());
}

Tensor SparseMatrix::to_dense() const {
  return ops::to_dense(pattern().indptr(), pattern().indices(), values(), shape(), pattern().simple());
}

Tensor SparseMatrix::to_torch() const {
  pattern().check_simple("to_torch");
  TORCH_CHECK_VALUE(values().dim() == 1, "to_torch: values must be (nnz,), not ", shape_text(values()));
  return at::_sparse_csr_tensor_unsafe(pattern().indptr(), pattern().indices(), values(), shape(),
                                       values().options().layout(at::kSparseCsr));
}

SparseMatrix SparseMatrix::coalesce() const {
  if (pattern().simple()) return *this;
  return from_coo(pattern().row_indices(), pattern().indices(), values(), shape());
}

std::string SparseMatrix::repr() const {
  const auto name = [](at::ScalarType type) { return c10::getDtypeNames(type).first; };  // float64, as Python says it
  std::ostringstream text;
  text << "SparseMatrix(" << rows() << " x " << cols() << ", nnz=" << nnz();
  if (values().dim() == 2) text << ", heads=" << values().size(1);
  text << ", " << name(dtype()) << ", " << name(pattern().indices().scalar_type()) << ", " << device();
  if (requires_grad()) text << ", requires_grad=True";
  text << ")";
  return text.str();
}

std::ostream& operator<<(std::ostream& out, const SparseMatrix& A) {
  return out << A.repr();
}

Tensor SparseMatrix::matmul(const Tensor& X) const {
  return spmm(*this, X);
}

Tensor SparseMatrix::rmatmul(const Tensor& X) const {
  TORCH_CHECK_VALUE(X.dim() >= 1 && X.dim() <= 2, "matmul: X A wants X of shape (n,) or (k, n), not ", shape_text(X));
  return X.dim() == 1 ? spmm(*this, X, /*transpose=*/true) : spmm(*this, X.t(), /*transpose=*/true).t();
}

namespace {
SparseMatrix assemble(const ops::Parts& parts, Shape shape, bool check = false) {
  const auto& [indptr, indices, values] = parts;
  return SparseMatrix(indptr, indices, values, shape, check);
}

SparseMatrix square(const ops::Parts& parts) {
  const int64_t n = std::get<0>(parts).size(0) - 1;
  return assemble(parts, {n, n});
}
}  // namespace

SparseMatrix from_coo(const Tensor& rows, const Tensor& cols, const Tensor& values, Shape shape) {
  return assemble(ops::from_coo(rows, cols, values, shape), shape);
}

SparseMatrix from_dense(const Tensor& dense) {
  const auto parts = ops::from_dense(dense);
  return assemble(parts, {dense.size(0), dense.size(1)});
}

SparseMatrix from_torch(const Tensor& A) {
  const auto parts = ops::from_torch(A);
  return assemble(parts, {A.size(0), A.size(1)}, /*check=*/true);  // torch need not have checked
}

SparseMatrix from_edge_index(const Tensor& edge_index, std::optional<Tensor> values, std::optional<int64_t> num_nodes) {
  return square(ops::from_edge_index(edge_index, values, num_nodes));
}

SparseMatrix eye(int64_t rows, std::optional<int64_t> cols, at::TensorOptions options) {
  const Shape shape = {rows, cols.value_or(rows)};
  return assemble(ops::eye(shape[0], shape[1], c10::typeMetaToScalarType(options.dtype()), options.device()), shape);
}

SparseMatrix eye(int64_t n, at::TensorOptions options) {
  return eye(n, n, options);
}

SparseMatrix poisson(at::IntArrayRef grid, at::TensorOptions options) {
  return square(ops::poisson(grid, c10::typeMetaToScalarType(options.dtype()), options.device()));
}

SparseMatrix random(int64_t rows, int64_t cols, double density, at::TensorOptions options) {
  return random(Shape{rows, cols}, density, std::nullopt, options);
}

SparseMatrix random(int64_t rows, int64_t cols, double density, at::Generator generator, at::TensorOptions options) {
  return random(Shape{rows, cols}, density, std::move(generator), options);
}

SparseMatrix random(Shape shape, double density, std::optional<at::Generator> generator, at::TensorOptions options) {
  TORCH_CHECK_VALUE(density >= 0 && density <= 1, "random: density must be in [0, 1], not ", density);
  const double count = density * static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  const auto nnz = static_cast<int64_t>(std::nearbyint(count));  // halves to even, as Python's round
  const auto parts = ops::random(shape, nnz, std::move(generator), c10::typeMetaToScalarType(options.dtype()));
  return assemble(parts, shape).to(options.device());
}

}  // namespace gossamer
