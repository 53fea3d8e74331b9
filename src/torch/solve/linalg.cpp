// SPDX-License-Identifier: BSD-3-Clause
// Front end: linalg::factorize, linalg::Factor and linalg::solve, which put the ops of this folder together.
#include <gossamer/linalg.h>

#include <ATen/ATen.h>

namespace gossamer::linalg {
namespace {

// A, or the real matrix of twice the size that stands for a complex one (real_form.cpp). Its pattern, and the places
// its values come from, are kept with the pattern of A.
SparseMatrix real_form(const SparseMatrix& A) {
  if (!A.values().is_complex()) return A;
  const Pattern& P = A.pattern();
  const auto [pattern, positions] = P.keep<std::pair<Pattern, Tensor>>("real form", [&P] {
    const auto [indptr, indices, places] = ops::real_form(P.tensors(), P.sym_shape());
    return std::pair(Pattern(indptr, indices, {2 * P.rows(), 2 * P.cols()}, /*check=*/false), places);
  });
  return SparseMatrix(pattern, ops::real_values(A.values(), positions));
}

}  // namespace

Factor::Factor(SparseMatrix A, SparseMatrix real, Tensor handle)
    : A_(std::move(A)), real_(std::move(real)), handle_(std::move(handle)) {}

Tensor Factor::solve(const Tensor& b, bool transpose) const {
  const auto op = A_.values().is_complex() ? ops::complex_solve : ops::factor_solve;
  return op(handle_, real_.pattern().tensors(true), real_.values(), b, real_.pattern().sym_shape(), transpose);
}

Tensor Factor::logdet() const {
  const Pattern& P = real_.pattern();
  const Tensor result = ops::factor_logdet(handle_, P.tensors(true), real_.values(), P.sym_shape());
  return A_.values().is_complex() ? result / 2 : result;  // det of the real form is |det A|²
}

SignAndLogDet Factor::slogdet() const {
  TORCH_CHECK_TYPE(!A_.values().is_complex(), "slogdet: the phase of a complex determinant is not known; logdet is");
  return {ops::factor_sign(handle_, A_.values()), logdet()};
}

std::string Factor::engine() const {
  return ops::factor_engine(handle_);
}

Factor factorize(const SparseMatrix& A, const std::string& kind, const std::string& engine) {
  A.pattern().check_simple("factorize");
  const SparseMatrix real = real_form(A);
  return Factor(A, real, ops::factorize(real.pattern().analysis(), real.values(), kind, engine));
}

Tensor solve(const SparseMatrix& A, const Tensor& b, const std::string& kind, const std::string& engine) {
  return factorize(A, kind, engine).solve(b);
}

}  // namespace gossamer::linalg
