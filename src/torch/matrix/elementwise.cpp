// SPDX-License-Identifier: BSD-3-Clause
#include <gossamer/elementwise.h>

#include <ATen/ATen.h>

#include <gossamer/compare.h>
#include <gossamer/products.h>
#include <gossamer/reduce.h>
#include "core/csr.h"
#include "core/op.h"

namespace gossamer {
namespace {

void check_factor(const char* op, const Tensor& values, const Tensor& s) {
  const bool one_a_head = values.dim() == 2 && s.dim() == 1 && s.sym_size(0) == values.sym_size(1);
  TORCH_CHECK_VALUE(s.dim() == 0 || one_a_head, op, ": wants a number or a tensor of shape () or (H,), not ",
                    shape_text(s));
}

// One number, or one a head; everything else is a dense matrix, or is broadcast to one.
bool is_number(const SparseMatrix& A, const Tensor& s) {
  return s.dim() == 0 || (A.values().dim() == 2 && s.dim() == 1);
}

SparseMatrix scaled(const SparseMatrix& A, const Tensor& d, bool cols) {
  const Pattern& P = A.pattern();
  const auto tensors = cols ? P.tensors_for({d}) : P.tensors();
  return A.with_values(ops::scale_axis(tensors, A.values(), d, P.sym_shape(), cols));
}

}  // namespace

// Types are promoted as torch does: a 0-dim tensor changes the kind of a type, never its width. The gradient of one
// number is a sum over all entries: ops::scale makes it in an order that threads do not change.
Tensor ops::times(const Tensor& values, const Tensor& s) {
  check_factor("mul", values, s);
  const auto type = at::result_type(values, s);
  return s.dim() == 0 && at::isFloatingType(type) ? scale(values.to(type), s.to(type)) : values * s;
}

Tensor ops::divide(const Tensor& values, const Tensor& s) {
  check_factor("div", values, s);
  const auto promoted = at::result_type(values, s);
  const bool integers = at::isIntegralType(promoted, /*includeBool=*/true);
  const auto type = integers ? at::typeMetaToScalarType(at::get_default_dtype()) : promoted;
  return times(values.to(type), s.to(type).reciprocal());
}

static const Composites composites = Composites()
                                         .def("times(Tensor values, Tensor s) -> Tensor", ops::times)
                                         .def("divide(Tensor values, Tensor s) -> Tensor", ops::divide);

SparseMatrix operator-(const SparseMatrix& A) {
  return A.with_values(-A.values());
}

SparseMatrix operator*(const SparseMatrix& A, const Tensor& s) {
  return is_number(A, s) ? A.with_values(ops::times(A.values(), s)) : multiply(A, s);
}

SparseMatrix operator*(const Tensor& s, const SparseMatrix& A) {
  return A * s;
}

SparseMatrix operator*(const SparseMatrix& A, const at::Scalar& s) {
  return A.with_values(A.values() * s);
}

SparseMatrix operator*(const at::Scalar& s, const SparseMatrix& A) {
  return A * s;
}

SparseMatrix operator/(const SparseMatrix& A, const Tensor& s) {
  return is_number(A, s) ? A.with_values(ops::divide(A.values(), s)) : multiply(A, s.reciprocal());
}

SparseMatrix operator/(const SparseMatrix& A, const at::Scalar& s) {
  return A.with_values(A.values() / s);
}

SparseMatrix SparseMatrix::abs() const {
  return with_values(values().abs());
}

SparseMatrix SparseMatrix::conj() const {
  return with_values(values().conj());
}

SparseMatrix SparseMatrix::real() const {
  return with_values(values().is_complex() ? at::real(values()) : values());
}

SparseMatrix SparseMatrix::imag() const {
  return with_values(values().is_complex() ? at::imag(values()) : at::zeros_like(values()));
}

SparseMatrix SparseMatrix::pow(double p) const {
  TORCH_CHECK_VALUE(p > 0, "pow: the exponent must be positive, not ", p, ": 0 ** p would not be 0");
  return with_values(values().pow(p));
}

SparseMatrix SparseMatrix::scale_rows(const Tensor& d) const {
  return scaled(*this, d, /*cols=*/false);
}

SparseMatrix SparseMatrix::scale_cols(const Tensor& d) const {
  return scaled(*this, d, /*cols=*/true);
}

SparseMatrix SparseMatrix::map(const std::function<Tensor(const Tensor&)>& f) const {
  const Tensor mapped = f(values());
  TORCH_CHECK_VALUE(mapped.dim() >= 1 && mapped.dim() <= 2 && mapped.size(0) == nnz(), "map: f must give values for ",
                    nnz(), " entries, not ", shape_text(mapped));
  return with_values(mapped);
}

}  // namespace gossamer
