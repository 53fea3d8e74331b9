// SPDX-License-Identifier: BSD-3-Clause
// Our own Cholesky factorisation, kernels/multifrontal.h: the engine for positive definite matrices that is always
// there, and the only one whose blocks give the inverse on the pattern.
#include <gossamer/kernels/inverse_tangent.h>
#include <gossamer/kernels/multifrontal_solve.h>
#include <gossamer/kernels/selected_inverse.h>
#include <gossamer/version.h>

#include <Eigen/OrderingMethods>
#include <Eigen/SparseCore>
#include <memory>
#include <mutex>

#include "core/launch.h"
#include "solve/engines/ordering.h"

namespace gossamer {
namespace {

using Matrix = Eigen::SparseMatrix<double, Eigen::ColMajor, int>;

PatternView<int> pattern_of(const SquareColumns& A) {
  return {A.n, A.n, A.ptr[A.n], A.ptr, A.rows};
}

// The number as which each row of a symmetric pattern is eliminated: approximate minimum degree.
std::vector<int32_t> minimum_degree(const SquareColumns& A) {
  const std::vector<double> ones(A.ptr[A.n], 1.0);
  const Eigen::Map<const Matrix> M(A.n, A.n, A.ptr[A.n], A.ptr, A.rows, ones.data());
  Eigen::AMDOrdering<int>::PermutationType eliminated;
  Eigen::AMDOrdering<int>()(M.selfadjointView<Eigen::Lower>(), eliminated);
  std::vector<int32_t> order(A.n);
  for (int k = 0; k < A.n; ++k) order[eliminated.size() ? eliminated.indices()(k) : k] = k;
  return order;
}

// The fronts have half of them: they are symmetric.
double multiplications_of(const AssemblyTree& tree) {
  double sum = 0;
  for (int64_t s = 0; s < tree.count(); ++s)
    if (tree.parent[s] < 0) sum += 2 * tree.work[s];
  return sum;
}

// Of a symmetric pattern, with the order that makes less work. From so many multiplications a row on (2-D grids do not
// get there, 3-D ones do between 20³ and 30³) nested dissection is worth a trial: it takes as long as half a
// factorisation or two, and halves all later ones. PARDISO's was the better and the quicker one on 30³ and 40³.
AssemblyTree tree_of(const SquareColumns& A) {
  constexpr double much = 1e5;
  AssemblyTree best = kernels::assembly_tree(pattern_of(A), minimum_degree(A));
  if (multiplications_of(best) <= much * A.n) return best;
  for (const auto order_by : {pardiso_order, metis_order}) {
    const std::vector<int> rows = order_by(A);
    if (rows.empty()) continue;
    std::vector<int32_t> order(A.n);
    for (int k = 0; k < A.n; ++k) order[rows[k]] = k;
    AssemblyTree tree = kernels::assembly_tree(pattern_of(A), order);
    if (multiplications_of(tree) < multiplications_of(best)) best = std::move(tree);
    break;
  }
  return best;
}

PivotOrder order_of(const AssemblyTree& tree) {
  return {tree.rank, tree.rank};
}

class MultifrontalFactor final : public EngineFactor, public InverseBlocks {
 public:
  explicit MultifrontalFactor(std::shared_ptr<const AssemblyTree> tree) : tree_(std::move(tree)), L_(numbers()) {}

  int64_t factorize(const double* values) {  // -1, or the column that broke down
    const int64_t broken = kernels::factor_cholesky(torch_pool(), *tree_, values, L_.get());
    pivots_.resize(tree_->n);
    for (int64_t s = 0; s < tree_->count(); ++s)
      for (int64_t c = 0; c < tree_->columns(s); ++c) {
        const double d = L_[tree_->value_ptr[s] + c * (tree_->height(s) + 1)];
        pivots_[tree_->first[s] + c] = d * d;
      }
    return broken;
  }
  void solve(double* x, int64_t columns, bool) const override {
    kernels::solve_cholesky(torch_pool(), *tree_, L_.get(), x, columns);
  }
  void solve_rows(int64_t, double* x, int64_t columns, bool) const override {
    kernels::solve_cholesky(torch_pool(), *tree_, L_.get(), x, columns, /*by_rows=*/true);
  }
  double pivot(int64_t k) const override { return pivots_[tree_->rank[k]]; }
  int sign() const override { return 1; }
  PivotOrder order() const override { return order_of(*tree_); }
  const InverseBlocks* blocks() const override { return this; }

  int64_t entries() const override { return static_cast<int64_t>(tree_->destination.size()); }
  void inverse(double* values) const override { kernels::gather(*tree_, selected_inverse(), 1.0, values); }
  void tangent(const double* direction, bool skew, double* values) const override {
    const auto X = numbers();
    kernels::inverse_tangent(torch_pool(), *tree_, L_.get(), selected_inverse(), direction, skew, X.get());
    kernels::gather(*tree_, X.get(), skew ? -1.0 : 1.0, values);
  }

 private:
  std::unique_ptr<double[]> numbers() const {  // the kernels set them all
    return std::unique_ptr<double[]>(new double[tree_->size()]);
  }
  // Found when it is first asked for.
  const double* selected_inverse() const {
    const std::lock_guard lock(mutex_);
    if (!S_) {
      auto S = numbers();
      kernels::selected_inverse(torch_pool(), *tree_, L_.get(), S.get());
      S_ = std::move(S);
    }
    return S_.get();
  }

  std::shared_ptr<const AssemblyTree> tree_;
  std::unique_ptr<double[]> L_;
  std::vector<double> pivots_;  // in the order of elimination
  mutable std::mutex mutex_;
  mutable std::unique_ptr<double[]> S_;
};

class MultifrontalAnalysis final : public Analysis {
 public:
  explicit MultifrontalAnalysis(const SquareColumns& A) : tree_(std::make_shared<const AssemblyTree>(tree_of(A))) {}
  Factored factorize(const SquareColumns& A) const override {
    auto factor = std::make_unique<MultifrontalFactor>(tree_);
    if (const int64_t column = factor->factorize(A.values); column >= 0) return {nullptr, column};
    return {std::move(factor), -1};
  }
  PivotOrder order() const override { return order_of(*tree_); }
  std::shared_ptr<const AssemblyTree> tree() const override { return tree_; }

 private:
  std::shared_ptr<const AssemblyTree> tree_;
};

std::unique_ptr<Analysis> analyze(const SquareColumns& A) {
  return std::make_unique<MultifrontalAnalysis>(A);
}
std::string version() {
  return GOSSAMER_VERSION;
}

}  // namespace

const Engine multifrontal = {"gossamer", version, nullptr, analyze};

double multiplications(const SquareColumns& A) {
  const std::vector<double> ones(A.ptr[A.n], 1.0);
  const Matrix M = Eigen::Map<const Matrix>(A.n, A.n, A.ptr[A.n], A.ptr, A.rows, ones.data());
  const Matrix both = M + Matrix(M.transpose());
  const SquareColumns columns{A.n, both.outerIndexPtr(), both.innerIndexPtr(), both.valuePtr()};
  return multiplications_of(kernels::assembly_tree(pattern_of(columns), minimum_degree(columns)));
}

}  // namespace gossamer
