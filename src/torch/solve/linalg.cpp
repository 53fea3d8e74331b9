// SPDX-License-Identifier: BSD-3-Clause
#include <gossamer/linalg.h>

#include <ATen/ATen.h>

#include <gossamer/structure.h>

namespace gossamer::linalg {

namespace {

// A complex matrix of n rows as a real one of 2n: every entry z becomes [Re z, -Im z; Im z, Re z],
//   Re A ⊗ [1 0; 0 1] + Im A ⊗ [0 -1; 1 0],        and every x[i] the pair Re x[i], Im x[i].
SparseMatrix real_form(const SparseMatrix& A) {
  if (!A.values().is_complex()) return A;
  const auto integers = A.pattern().indptr().options();
  const auto full = [&](at::ArrayRef<double> values) {  // zeros are stored: both products have one pattern
    return SparseMatrix(at::tensor({0, 2, 4}).to(integers), at::tensor({0, 1, 0, 1}).to(integers),
                        at::tensor(values).to(at::real(A.values()).options()), {2, 2});
  };
  const SparseMatrix re = kron(A.with_values(at::real(A.values())), full({1, 0, 0, 1}));
  const SparseMatrix im = kron(A.with_values(at::imag(A.values())), full({0, -1, 1, 0}));
  return SparseMatrix(A.pattern().keep<Pattern>("real form", [&re] { return re.pattern(); }),
                      re.values() + im.values());
}

Tensor pairs(const Tensor& b) {  // (n, …) → (2n, …)
  return at::view_as_real(b.resolve_conj()).movedim(-1, 1).flatten(0, 1);
}
Tensor from_pairs(const Tensor& x) {
  const Tensor parts = x.unflatten(0, {-1, 2});
  return at::complex(parts.select(1, 0), parts.select(1, 1));
}

}  // namespace

Factor::Factor(SparseMatrix A, SparseMatrix real, Tensor handle)
    : A_(std::move(A)), real_(std::move(real)), handle_(std::move(handle)) {}

Tensor Factor::solve(const Tensor& b, bool transpose) const {
  const Pattern& P = real_.pattern();
  const auto solved = [&](const Tensor& given) {
    return ops::factor_solve(handle_, P.tensors(true), real_.values(), given, P.sym_shape(), transpose);
  };
  if (!A_.values().is_complex()) return solved(b);
  TORCH_CHECK_TYPE(b.is_complex(), "solve: A is complex but b is ", b.scalar_type());
  // The transpose of the real form is the form of the conjugate transpose: Aᵀ x = b is Aᴴ x̄ = b̄.
  return transpose ? from_pairs(solved(pairs(b.conj()))).conj() : from_pairs(solved(pairs(b)));
}

Tensor Factor::logdet() const {
  const Pattern& P = real_.pattern();
  const Tensor result = ops::factor_logdet(handle_, P.tensors(true), real_.values(), P.sym_shape());
  return A_.values().is_complex() ? result / 2 : result;  // det of the real form is |det A|²
}

std::pair<Tensor, Tensor> Factor::slogdet() const {
  TORCH_CHECK_TYPE(!A_.values().is_complex(), "slogdet: the phase of a complex determinant is not known; logdet is");
  return {ops::factor_sign(handle_, A_.values()), logdet()};
}

std::string Factor::engine() const {
  return ops::factor_engine(handle_);
}

Factor factorize(const SparseMatrix& A, const std::string& kind, const std::string& engine) {
  A.pattern().check_simple("factorize");
  const SparseMatrix real = real_form(A);
  const Pattern& P = real.pattern();
  const auto analysis =
      P.keep<Tensor>("analysis", [&P] { return ops::analyze(P.tensors(/*with_transpose=*/true), P.sym_shape()); });
  return Factor(A, real, ops::factorize(analysis, real.values(), kind, engine));
}

Tensor solve(const SparseMatrix& A, const Tensor& b, const std::string& kind, const std::string& engine) {
  return factorize(A, kind, engine).solve(b);
}

}  // namespace gossamer::linalg
