// SPDX-License-Identifier: BSD-3-Clause
#include <gossamer/elementwise.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

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
  const bool differentiates_d = c10::GradMode::is_enabled() && d.requires_grad();
  return A.with_values(ops::scale_axis(A.pattern().tensors(/*with_transpose=*/cols && differentiates_d), A.values(), d,
                                       A.pattern().sym_shape(), cols));
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
  return with_values(f(values_));
}

}  // namespace gossamer
