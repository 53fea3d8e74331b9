// SPDX-License-Identifier: BSD-3-Clause
#include "gossamer/linalg.h"

#include "gossamer/ops.h"

namespace gossamer::linalg {

Factor::Factor(SparseMatrix A, Tensor handle) : A_(std::move(A)), handle_(std::move(handle)) {}

Tensor Factor::solve(const Tensor& b, bool transpose) const {
  const Pattern& P = A_.pattern();
  return ops::factor_solve(handle_, P.tensors(true), A_.values(), b, P.sym_shape(), transpose);
}

Tensor Factor::logdet() const {
  const Pattern& P = A_.pattern();
  return ops::factor_logdet(handle_, P.tensors(true), A_.values(), P.sym_shape());
}

std::pair<Tensor, Tensor> Factor::slogdet() const {
  return {ops::factor_sign(handle_, A_.values()), logdet()};
}

std::string Factor::engine() const {
  return ops::factor_engine(handle_);
}

Factor factorize(const SparseMatrix& A, const std::string& kind, const std::string& engine) {
  const Pattern& P = A.pattern();
  const auto analysis =
      P.keep<Tensor>("analysis", [&P] { return ops::analyze(P.tensors(/*with_transpose=*/true), P.sym_shape()); });
  return Factor(A, ops::factorize(analysis, A.values(), kind, engine));
}

Tensor solve(const SparseMatrix& A, const Tensor& b, const std::string& kind, const std::string& engine) {
  return factorize(A, kind, engine).solve(b);
}

}  // namespace gossamer::linalg
