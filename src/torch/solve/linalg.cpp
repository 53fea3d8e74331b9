// SPDX-License-Identifier: BSD-3-Clause
// Front end: linalg::factorize, linalg::Factor and linalg::solve, which put the ops of this folder together.
#include <gossamer/linalg.h>
#include <gossamer/structure.h>

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

Factor::Factor(SparseMatrix A, SparseMatrix real, Tensor handle, bool flipped)
    : A_(std::move(A)), real_(std::move(real)), handle_(std::move(handle)), flipped_(flipped) {}

Tensor Factor::solve(const Tensor& b, bool transpose, bool refine) const {
  const auto op = at::isComplexType(A_.dtype()) ? ops::complex_solve : ops::factor_solve;
  const Pattern& P = real_.pattern();
  return op(handle_, P.tensors(true), real_.values(), b, P.sym_shape(), transpose != flipped_, refine);
}

Tensor Factor::logdet() const {
  const Pattern& P = real_.pattern();
  const Tensor result = ops::factor_logdet(handle_, P.tensors(true), real_.values(), P.sym_shape());
  return at::isComplexType(A_.dtype()) ? result / 2 : result;  // det of the real form is |det A|²
}

SignAndLogDet Factor::slogdet() const {
  TORCH_CHECK_TYPE(!at::isComplexType(A_.dtype()),
                   "slogdet: the phase of a complex determinant is not known; logdet is");
  return {ops::factor_sign(handle_, real_.values()), logdet()};
}

SparseMatrix Factor::selected_inverse() const {
  TORCH_CHECK_TYPE(!at::isComplexType(A_.dtype()), "selected_inverse: the matrix must be real, not ", A_.dtype());
  const Pattern& P = real_.pattern();
  const SparseMatrix Z(P, ops::factor_inverse(handle_, P.tensors(true), real_.values(), P.sym_shape(), /*t=*/false));
  return flipped_ ? Z.T() : Z;
}

Tensor Factor::inverse_diagonal() const {
  const Pattern& P = real_.pattern();
  const bool whole = P.keep<bool>("whole diagonal", [&P] {
    const Tensor i = at::arange(P.rows(), P.indptr().options().dtype(at::kLong));
    return std::get<0>(ops::entries(P.indptr(), P.indices(), P.sym_shape(), i, i)).size(0) == P.rows();
  });
  TORCH_CHECK_VALUE(whole, "inverse_diagonal: A must have all entries of its diagonal, where the inverse is known");
  return selected_inverse().diagonal();
}

std::string Factor::engine() const {
  return ops::factor_engine(handle_);
}

Factor factorize(const SparseMatrix& A, const std::string& kind, const std::string& engine) {
  const auto original = A.original();
  const SparseMatrix& factored = original ? *original : A;
  factored.pattern().check_simple("factorize");
  const SparseMatrix real = real_form(factored);
  const Tensor handle = ops::factorize(real.pattern().analysis(), real.values(), kind, engine);
  return Factor(A, real, handle, /*flipped=*/original.has_value());
}

SparseMatrix selected_inverse(const SparseMatrix& A) {
  return factorize(A).selected_inverse();
}

Tensor solve(const SparseMatrix& A, const Tensor& b, const std::string& kind, const std::string& engine) {
  return factorize(A, kind, engine).solve(b);
}

}  // namespace gossamer::linalg
