// SPDX-License-Identifier: BSD-3-Clause
// linalg::ichol and linalg::ilu: incomplete factors as preconditioners. M r is two triangular solves.
#include <ATen/ATen.h>
#include <gossamer/linalg.h>

#include "core/arguments.h"
#include "precondition/matrix.h"

namespace gossamer::linalg {
namespace {

// What the derivative of a factor on P needs, kept with P: J as incomplete_jacobian gives it, its transpose, its
// levels.
std::vector<Tensor> jacobian_of(const Pattern& P, int64_t kind) {
  return P.keep<std::vector<Tensor>>(kind == 0 ? "ichol jacobian" : "ilu jacobian", [&] {
    const auto [indptr, indices, from, scale] = ops::incomplete_jacobian(P.tensors(), P.sym_shape(), kind);
    const Pattern J(indptr, indices, {P.nnz(), P.nnz()}, /*check=*/false);
    const auto [indptr_t, indices_t, perm_t] = J.transpose();
    std::vector<Tensor> all = {indptr, indices, from, scale, indptr_t, indices_t, perm_t};
    const auto levels = J.levels(/*upper=*/false);
    all.insert(all.end(), levels.begin(), levels.end());
    return all;
  });
}

SparseMatrix factor(const SparseMatrix& A, int64_t kind) {
  const Pattern& P = A.pattern();
  const auto jacobian = wants_derivative(A.values()) ? jacobian_of(P, kind) : std::vector<Tensor>();
  return A.with_values(ops::incomplete_factor(P.tensors(), A.values(), P.sym_shape(), jacobian, kind));
}

// A with the values of another matrix on its pattern, which may be another object.
SparseMatrix on_pattern(const char* op, const Pattern& pattern, const SparseMatrix& A) {
  check_same_pattern(op, pattern, A);
  return SparseMatrix(pattern, A.values());
}

class IncompleteCholesky final : public IncompleteFactors {
 public:
  IncompleteCholesky(const SparseMatrix& A, double shift) : pattern_(A.pattern()), shift_(shift) { update(A); }

  int64_t size() const override { return pattern_.rows(); }
  void update(const SparseMatrix& A) override {
    const OrdinaryNumbers numbers;
    const SparseMatrix T = on_pattern("ichol", pattern_, A).tril();
    L_ = factor(shift_ == 0 ? T : T.with_diagonal(T.diagonal() * (1 + shift_)), 0);
  }
  MatrixPreconditionerPtr copy() const override { return std::make_shared<IncompleteCholesky>(*this); }
  SparseMatrix L() const override { return L_; }
  SparseMatrix U() const override { return L_.T(); }
  Tensor apply(const Tensor& r, bool) const override {
    return solve_triangular(L_, solve_triangular(L_, r), false, false, /*transpose=*/true);
  }

 private:
  Pattern pattern_;
  double shift_;
  SparseMatrix L_;
};

class IncompleteLU final : public IncompleteFactors {
 public:
  explicit IncompleteLU(const SparseMatrix& A) : pattern_(A.pattern()) { update(A); }

  int64_t size() const override { return pattern_.rows(); }
  void update(const SparseMatrix& A) override {
    const OrdinaryNumbers numbers;
    F_ = factor(on_pattern("ilu", pattern_, A), 1);
  }
  MatrixPreconditionerPtr copy() const override { return std::make_shared<IncompleteLU>(*this); }
  SparseMatrix L() const override { return F_.tril().with_diagonal(at::ones({}, F_.values().options())); }
  SparseMatrix U() const override { return F_.triu(); }
  Tensor apply(const Tensor& r, bool transpose) const override {
    const auto with_L = [this, transpose](const Tensor& b) { return solve_triangular(F_, b, false, true, transpose); };
    const auto with_U = [this, transpose](const Tensor& b) { return solve_triangular(F_, b, true, false, transpose); };
    return transpose ? with_L(with_U(r)) : with_U(with_L(r));
  }

 private:
  Pattern pattern_;
  SparseMatrix F_;  // L below the diagonal, U on and above it
};

}  // namespace

IncompleteFactorsPtr ichol(const SparseMatrix& A, double shift) {
  check_preconditioned("ichol", A);
  TORCH_CHECK_VALUE(shift >= 0, "ichol: shift must not be negative, got ", shift);
  return std::make_shared<IncompleteCholesky>(A, shift);
}

IncompleteFactorsPtr ilu(const SparseMatrix& A) {
  check_preconditioned("ilu", A);
  return std::make_shared<IncompleteLU>(A);
}

}  // namespace gossamer::linalg
