// SPDX-License-Identifier: BSD-3-Clause
#include <gossamer/elementwise.h>

#include <ATen/ATen.h>

#include <gossamer/products.h>
#include <gossamer/reduce.h>
#include "core/csr.h"

namespace gossamer {
namespace {

// The gradient of one number is a sum over all entries: ops::scale makes it in an order that threads do not change.
Tensor times(const char* op, const SparseMatrix& A, const Tensor& s) {
  const bool one_a_head = A.values().dim() == 2 && s.dim() == 1 && s.size(0) == A.values().size(1);
  TORCH_CHECK_VALUE(s.dim() == 0 || one_a_head, op, ": wants a number or a tensor of shape () or (H,), not ",
                    shape_text(s));
  return s.dim() == 0 && A.values().is_floating_point() ? ops::scale(A.values(), s.to(A.dtype())) : A.values() * s;
}

SparseMatrix scaled(const SparseMatrix& A, const Tensor& d, bool cols) {
  const Pattern& P = A.pattern();
  const auto tensors = cols ? P.tensors_for({d}) : P.tensors();
  return A.with_values(ops::scale_axis(tensors, A.values(), d, P.sym_shape(), cols));
}

}  // namespace

SparseMatrix operator-(const SparseMatrix& A) {
  return A.with_values(-A.values());
}

SparseMatrix operator*(const SparseMatrix& A, const Tensor& s) {
  return A.with_values(times("mul", A, s));
}

SparseMatrix operator*(const Tensor& s, const SparseMatrix& A) {
  return A * s;
}

SparseMatrix operator*(const SparseMatrix& A, double s) {
  return A.with_values(A.values() * s);
}

SparseMatrix operator*(double s, const SparseMatrix& A) {
  return A * s;
}

SparseMatrix operator/(const SparseMatrix& A, const Tensor& s) {
  return A.with_values(times("div", A, s.reciprocal()));
}

SparseMatrix operator/(const SparseMatrix& A, double s) {
  return A.with_values(A.values() / s);
}

SparseMatrix SparseMatrix::abs() const {
  return with_values(values_.abs());
}

SparseMatrix SparseMatrix::pow(double p) const {
  TORCH_CHECK_VALUE(p > 0, "pow: the exponent must be positive, not ", p, ": 0 ** p would not be 0");
  return with_values(values_.pow(p));
}

SparseMatrix SparseMatrix::scale_rows(const Tensor& d) const {
  return scaled(*this, d, /*cols=*/false);
}

SparseMatrix SparseMatrix::scale_cols(const Tensor& d) const {
  return scaled(*this, d, /*cols=*/true);
}

SparseMatrix SparseMatrix::map(const std::function<Tensor(const Tensor&)>& f) const {
  const Tensor values = f(values_);
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.dim() <= 2 && values.size(0) == nnz(), "map: f must give values for ",
                    nnz(), " entries, not ", shape_text(values));
  return with_values(values);
}

}  // namespace gossamer
