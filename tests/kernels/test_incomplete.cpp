// SPDX-License-Identifier: BSD-3-Clause
// Incomplete factors: their product on the pattern, the row that breaks down, and J dF = dA by differences.
#include <gossamer/kernels/incomplete.h>

#include "dense.h"

namespace gossamer::test {
namespace {

using kernels::Incomplete;

// n rows with a whole diagonal; of the lower triangle alone for Cholesky.
template <class I>
OwnedPattern<I> sample(Random& random, int64_t n, Incomplete kind) {
  std::vector<std::vector<I>> rows(n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < (kind == Incomplete::cholesky ? i + 1 : n); ++j)
      if (i == j || random.below(4) == 0) rows[i].push_back(static_cast<I>(j));
  return OwnedPattern<I>(n, rows);
}

template <class T, class I>
struct Factor {
  Incomplete kind;
  OwnedPattern<I> P;
  std::vector<T> a, F;
  std::vector<I> diagonal;

  Factor(Random& random, int64_t n, Incomplete which)
      : kind(which), P(sample<I>(random, n, which)), a(random.template values<T>(P.nnz())), F(P.nnz()), diagonal(n) {
    EXPECT_EQ(kernels::find_diagonal(P.view(), diagonal.data()), -1);
    for (const I p : diagonal) a[p] += static_cast<T>(n);
    EXPECT_EQ(factor(a, F), -1);
  }
  int64_t factor(const std::vector<T>& values, std::vector<T>& to) const {
    return kernels::incomplete_factor(kind, Csr<T, I>{P.view(), values.data()}, diagonal.data(), to.data());
  }
  // Entry (i, j) of the left factor L and of the right one, U or Lᵀ.
  double entry(int64_t i, int64_t j) const {
    for (int64_t p = P.indptr[i]; p < P.indptr[i + 1]; ++p)
      if (P.indices[p] == j) return static_cast<double>(F[p]);
    return 0;
  }
  double left(int64_t i, int64_t j) const { return kind == Incomplete::lu && i == j ? 1 : i >= j ? entry(i, j) : 0; }
  double right(int64_t i, int64_t j) const {
    return kind == Incomplete::cholesky ? left(j, i) : i <= j ? entry(i, j) : 0;
  }
};

template <class P>
class IncompleteFactors : public testing::Test {};
using Real = testing::Types<Types<float, int32_t>, Types<double, int64_t>>;
TYPED_TEST_SUITE(IncompleteFactors, Real);

TYPED_TEST(IncompleteFactors, MultiplyToTheMatrixOnItsPattern) {
  using T = typename TypeParam::T;
  Random random(1);
  for (const Incomplete kind : {Incomplete::cholesky, Incomplete::lu})
    for (const int64_t n : {1, 2, 7, 23}) {
      const Factor<T, typename TypeParam::I> f(random, n, kind);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t p = f.P.indptr[i]; p < f.P.indptr[i + 1]; ++p) {
          double product = 0;
          for (int64_t k = 0; k < n; ++k) product += f.left(i, k) * f.right(k, f.P.indices[p]);
          EXPECT_NEAR(product, static_cast<double>(f.a[p]), 50 * n * std::numeric_limits<T>::epsilon());
        }
    }
}

TYPED_TEST(IncompleteFactors, NameTheRowThatBreaksDown) {
  using T = typename TypeParam::T;
  Random random(2);
  for (const Incomplete kind : {Incomplete::cholesky, Incomplete::lu}) {
    Factor<T, typename TypeParam::I> f(random, 9, kind);
    auto a = f.a;
    const int64_t bad = 0;
    a[f.diagonal[bad]] = 0;
    EXPECT_EQ(f.factor(a, f.F), bad);
    a[f.diagonal[bad]] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_EQ(f.factor(a, f.F), bad);
  }
}

TEST(IncompleteFactors, FindWhatIsMissing) {
  const OwnedPattern<int32_t> P(3, {{0}, {0, 2}, {2}});
  std::vector<int32_t> diagonal(3);
  EXPECT_EQ(kernels::find_diagonal(P.view(), diagonal.data()), 1);
  EXPECT_EQ(kernels::without_diagonal(P.view()), std::vector<int64_t>{1});
}

// J dF = dA for a difference of two factors, and J's columns ascend up to the diagonal.
TEST(IncompleteFactors, HaveATriangularJacobian) {
  Random random(3);
  for (const Incomplete kind : {Incomplete::cholesky, Incomplete::lu}) {
    const Factor<double, int32_t> f(random, 15, kind);
    const int64_t nnz = f.P.nnz();
    std::vector<int64_t> indptr(nnz + 1);
    kernels::count_jacobian(kind, f.P.view(), f.diagonal.data(), indptr.data());
    std::vector<int32_t> indices(indptr[nnz]);
    std::vector<int64_t> from(indptr[nnz]);
    kernels::fill_jacobian(kind, f.P.view(), f.diagonal.data(), indptr.data(), indices.data(), from.data());

    const double h = 1e-6;
    const auto direction = random.values<double>(nnz);
    std::vector<double> more = f.a, less = f.a, F_more(nnz), F_less(nnz);
    for (int64_t e = 0; e < nnz; ++e) more[e] += h * direction[e], less[e] -= h * direction[e];
    ASSERT_EQ(f.factor(more, F_more), -1);
    ASSERT_EQ(f.factor(less, F_less), -1);
    for (int64_t i = 0; i < 15; ++i)
      for (int64_t e = f.P.indptr[i]; e < f.P.indptr[i + 1]; ++e) {
        double product = 0;
        for (int64_t p = indptr[e]; p < indptr[e + 1]; ++p) {
          EXPECT_TRUE(p == indptr[e] || indices[p - 1] < indices[p]);
          const double value = from[p] == nnz ? 1 : f.F[from[p]];
          product += value * (F_more[indices[p]] - F_less[indices[p]]) / (2 * h);
        }
        EXPECT_EQ(indices[indptr[e + 1] - 1], e);
        const bool halved = kind == Incomplete::cholesky && f.P.indices[e] == i;
        EXPECT_NEAR(product, direction[e] * (halved ? 0.5 : 1), 1e-7);
      }
  }
}

}  // namespace
}  // namespace gossamer::test
