// SPDX-License-Identifier: BSD-3-Clause
// Eigen's sparse LU: the engine for all other matrices that is always there. Eigen (MPL2) is headers only.
#include <Eigen/SparseLU>
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "solve/engines/engine.h"

namespace gossamer {
namespace {

using Matrix = Eigen::SparseMatrix<double, Eigen::ColMajor, int>;

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

template <class Permutation>
std::vector<int> ranks_of(const Permutation& permutation, int64_t n) {
  std::vector<int> ranks(n);
  for (int64_t k = 0; k < n; ++k) ranks[k] = permutation.size() ? permutation.indices()(k) : static_cast<int>(k);
  return ranks;
}

// AMD of A + Aᵀ. Eigen's own gives the inverse of what its LU takes (its Cholesky turns it round).
struct SymmetricOrdering {
  using PermutationType = Eigen::AMDOrdering<int>::PermutationType;
  template <class M>
  void operator()(const M& A, PermutationType& permutation) const {
    PermutationType inverse;
    Eigen::AMDOrdering<int>()(A, inverse);
    permutation = inverse.inverse();
  }
};

template <class Ordering>
class Lu final : public EngineFactor, public Eigen::SparseLU<Matrix, Ordering> {
  using Base = Eigen::SparseLU<Matrix, Ordering>;
  using Base::m_Lstore, Base::m_perm_c, Base::rows;

 public:
  // A pivot on the diagonal is kept if no entry of its column is `1 / threshold` times larger. Below 1, the ordering is
  // meant for pivots on the diagonal.
  explicit Lu(double threshold) : threshold_(threshold) { Base::isSymmetric(threshold < 1); }
  // With the ordering of another matrix on the same pattern.
  Lu(const Lu& analysed) : EngineFactor(), Base(), threshold_(analysed.threshold_) {
    m_perm_c = analysed.m_perm_c;
    Base::m_etree = analysed.m_etree;
    Base::m_analysisIsOk = true;
    Base::setPivotThreshold(threshold_);
    Base::isSymmetric(threshold_ < 1);
  }
  void solve(double* x, int64_t columns, bool t) const override {
    auto& self = const_cast<Lu&>(*this);  // transpose() is not const in Eigen 3.4, but changes nothing
    if (t)
      solve_in_place(self.Base::transpose(), rows(), x, columns);
    else
      solve_in_place(static_cast<const Base&>(*this), rows(), x, columns);
  }
  double pivot(int64_t k) const override {
    for (typename Base::SCMatrix::InnerIterator it(m_Lstore, m_perm_c.indices()(k)); it; ++it)
      if (it.index() == it.col()) return std::abs(it.value());
    return 0;
  }
  int sign() const override { return const_cast<Lu&>(*this).signDeterminant() < 0 ? -1 : 1; }  // not const in 3.4
  PivotOrder order() const override { return {ranks_of(Base::m_perm_r, rows()), ranks_of(m_perm_c, rows())}; }
  // The message ends in the number of the column, counted from one in Eigen's order.
  int64_t breakdown() const {
    const std::string text = Base::lastErrorMessage();
    const size_t digits = text.find_last_not_of("0123456789") + 1;
    return digits < text.size() ? original(m_perm_c, std::atoll(text.c_str() + digits) - 1) : 0;
  }
  // Eigen says so in a message alone: its info() stays a success, or blames a pivot.
  void check_memory() const {
    if (Base::lastErrorMessage().starts_with("UNABLE TO")) throw std::bad_alloc();
  }

 private:
  double threshold_;
};

template <class Ordering>
class LuAnalysis final : public Analysis {
 public:
  LuAnalysis(const SquareColumns& A, double threshold) : analysed_(threshold) { analysed_.analyzePattern(copied(A)); }
  Factored factorize(const SquareColumns& A) const override {
    auto factor = std::make_unique<Lu<Ordering>>(analysed_);
    factor->factorize(copied(A));
    factor->check_memory();
    if (factor->info() != Eigen::Success) return {nullptr, factor->breakdown()};
    return {std::move(factor), -1};
  }

 private:
  Lu<Ordering> analysed_;
};

// Whether most entries have a partner across the diagonal, and the diagonal is there.
bool nearly_symmetric(const SquareColumns& A) {
  int64_t alone = 0, on_diagonal = 0;
  for (int j = 0; j < A.n; ++j)
    for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) {
      const int i = A.rows[q];
      on_diagonal += i == j;
      alone += !std::binary_search(A.rows + A.ptr[i], A.rows + A.ptr[i + 1], j);
    }
  return on_diagonal == A.n && 10 * alone <= 3 * static_cast<int64_t>(A.ptr[A.n]);
}

// A nearly symmetric pattern fills in least with an ordering of A + Aᵀ, if pivots stay on the diagonal where they can;
// any other with an ordering of AᵀA, which holds for all pivots. Refinement makes up for the smaller pivots.
std::unique_ptr<Analysis> analyze_lu(const SquareColumns& A) {
  if (nearly_symmetric(A)) return std::make_unique<LuAnalysis<SymmetricOrdering>>(A, 0.01);
  return std::make_unique<LuAnalysis<Eigen::COLAMDOrdering<int>>>(A, 1.0);
}
std::string version() {
  return std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
         std::to_string(EIGEN_MINOR_VERSION);
}

}  // namespace

const Engine eigen = {"eigen", version, analyze_lu, nullptr};

}  // namespace gossamer
