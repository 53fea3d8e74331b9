// SPDX-License-Identifier: BSD-3-Clause
// Eigen's sparse LU and LDLᵀ: the engines that are always there. Eigen (MPL2) is headers only.
#include <Eigen/SparseCholesky>
#include <Eigen/SparseLU>
#include <cmath>
#include <cstdlib>

#include "engine.h"

namespace gossamer {
namespace {

using Matrix = Eigen::SparseMatrix<double, Eigen::ColMajor, int>;
using Lower = Eigen::SimplicialLDLT<Matrix, Eigen::Lower, Eigen::AMDOrdering<int>>;

Matrix copied(const SquareColumns& A) {
  return Eigen::Map<const Matrix>(A.n, A.n, A.ptr[A.n], A.ptr, A.rows, A.values);
}

template <class Solver>
void solve_in_place(const Solver& solver, int64_t n, double* x, int64_t columns) {
  Eigen::Map<Eigen::MatrixXd> X(x, n, columns);
  const Eigen::MatrixXd solved = solver.solve(X);
  X = solved;
}

// The k for which permutation(k) is `place`.
template <class Permutation>
int64_t original(const Permutation& permutation, int64_t place) {
  for (int64_t k = 0; k < permutation.size(); ++k)
    if (permutation.indices()(k) == place) return k;
  return -1;
}

class Lu final : public Factor, public Eigen::SparseLU<Matrix, Eigen::COLAMDOrdering<int>> {
 public:
  Lu() = default;
  // With the ordering of another matrix on the same pattern.
  explicit Lu(const Lu& analysed) : Factor(), Eigen::SparseLU<Matrix, Eigen::COLAMDOrdering<int>>() {
    m_perm_c = analysed.m_perm_c;
    m_etree = analysed.m_etree;
    m_analysisIsOk = true;
  }
  void solve(double* x, int64_t columns, bool t) const override {
    auto& self = const_cast<Lu&>(*this);  // transpose() is not const in Eigen 3.4, but changes nothing
    if (t)
      solve_in_place(self.transpose(), rows(), x, columns);
    else
      solve_in_place(static_cast<const SparseLU&>(*this), rows(), x, columns);
  }
  double pivot(int64_t k) const override {
    for (SCMatrix::InnerIterator it(m_Lstore, m_perm_c.indices()(k)); it; ++it)
      if (it.index() == it.col()) return std::abs(it.value());
    return 0;
  }
  // The message ends in the number of the column, counted from one in Eigen's order.
  int64_t breakdown() const {
    const std::string text = lastErrorMessage();
    const size_t digits = text.find_last_not_of("0123456789") + 1;
    return digits < text.size() ? original(m_perm_c, std::atoll(text.c_str() + digits) - 1) : 0;
  }
};

class Ldlt final : public Factor, public Lower {
 public:
  Ldlt() = default;
  explicit Ldlt(const Ldlt& analysed) : Factor(), Lower() {
    analyzePattern(Matrix(1, 1));  // sets a flag that is private; the rest is replaced
    m_matrix = analysed.m_matrix;
    m_parent = analysed.m_parent;
    m_nonZerosPerCol = analysed.m_nonZerosPerCol;
    m_P = analysed.m_P;
    m_Pinv = analysed.m_Pinv;
  }
  void solve(double* x, int64_t columns, bool) const override {
    solve_in_place(static_cast<const Lower&>(*this), rows(), x, columns);
  }
  double pivot(int64_t k) const override { return m_diag(m_P.size() ? m_P.indices()(k) : k); }
  int64_t breakdown() const {  // -1: all pivots are positive
    for (int64_t k = 0; k < m_diag.size(); ++k)
      if (!(m_diag(k) > 0)) return m_P.size() ? original(m_P, k) : k;
    return -1;
  }
};

class LuAnalysis final : public Analysis {
 public:
  explicit LuAnalysis(const SquareColumns& A) { analysed_.analyzePattern(copied(A)); }
  Factored factorize(const SquareColumns& A) const override {
    auto factor = std::make_unique<Lu>(analysed_);
    factor->factorize(copied(A));
    if (factor->info() != Eigen::Success) return {nullptr, factor->breakdown()};
    return {std::move(factor), -1};
  }

 private:
  Lu analysed_;
};

class LdltAnalysis final : public Analysis {
 public:
  explicit LdltAnalysis(const SquareColumns& A) { analysed_.analyzePattern(copied(A)); }
  Factored factorize(const SquareColumns& A) const override {
    auto factor = std::make_unique<Ldlt>(analysed_);
    factor->factorize(copied(A));
    if (const int64_t column = factor->breakdown(); column >= 0) return {nullptr, column};
    return {std::move(factor), -1};
  }

 private:
  Ldlt analysed_;
};

}  // namespace

std::unique_ptr<Analysis> analyze_lu(const SquareColumns& A) {
  return std::make_unique<LuAnalysis>(A);
}
std::unique_ptr<Analysis> analyze_cholesky(const SquareColumns& A) {
  return std::make_unique<LdltAnalysis>(A);
}

std::string engine_names() {
  return "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
         std::to_string(EIGEN_MINOR_VERSION) + " (LU, LDLT)";
}

}  // namespace gossamer
