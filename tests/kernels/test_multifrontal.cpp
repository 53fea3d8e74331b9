// SPDX-License-Identifier: BSD-3-Clause
// The factor that we own, against dense mathematics: L Lᵀ, solutions, the inverse where L has entries and its
// derivative, for every shape of tree.
#include <gossamer/kernels/inverse_tangent.h>
#include <gossamer/kernels/multifrontal_solve.h>
#include <gossamer/kernels/selected_inverse.h>

#include <functional>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

template <class T>
class Multifrontal : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Multifrontal, Reals);

template <class T>
constexpr double loose = std::is_same_v<T, float> ? 2e-4 : 1e-11;

using Table = std::vector<std::vector<double>>;  // a dense matrix
using Stored = std::function<bool(int64_t i, int64_t j)>;

// A symmetric matrix with the entries that `stored` says, and the diagonal; dominant, so that it is well-conditioned.
struct Symmetric {
  OwnedPattern<int32_t> pattern;
  Table dense;

  template <class T>
  std::vector<T> values(const Table& of) const {
    std::vector<T> result(pattern.nnz());
    for (int64_t i = 0; i < pattern.rows; ++i)
      for (int64_t p = pattern.indptr[i]; p < pattern.indptr[i + 1]; ++p)
        result[p] = static_cast<T>(of[i][pattern.indices[p]]);
    return result;
  }
  template <class T>
  std::vector<T> values() const {
    return values<T>(dense);
  }
};

Symmetric symmetric(Random& random, int64_t n, const Stored& stored) {
  std::vector<std::vector<int32_t>> rows(n);
  Table dense(n, std::vector<double>(n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j)
      if (stored(i, j)) dense[i][j] = dense[j][i] = random.real();
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0.5;
    for (int64_t j = 0; j < n; ++j) sum += std::abs(dense[i][j]);
    dense[i][i] = sum;
    for (int64_t j = 0; j < n; ++j)
      if (i == j || stored(std::max(i, j), std::min(i, j))) rows[i].push_back(static_cast<int32_t>(j));
  }
  return {OwnedPattern<int32_t>(n, rows), dense};
}

std::vector<Symmetric> every_shape() {
  Random random(1);
  std::vector<Symmetric> all;
  for (const int64_t n : {0, 1, 2, 9, 40}) {
    all.push_back(symmetric(random, n, [](int64_t, int64_t) { return true; }));
    all.push_back(symmetric(random, n, [](int64_t, int64_t) { return false; }));               // diagonal: a forest
    all.push_back(symmetric(random, n, [](int64_t i, int64_t j) { return i == j + 1; }));      // a chain
    all.push_back(symmetric(random, n, [](int64_t, int64_t j) { return j == 0; }));            // an arrow
    all.push_back(symmetric(random, n, [](int64_t i, int64_t j) { return i / 5 == j / 5; }));  // disconnected
    all.push_back(symmetric(random, n, [](int64_t i, int64_t j) { return i - j == 7 || (i - j == 1 && i % 7); }));
  }
  for (const int64_t one_in : {3, 8, 20, 40, 60}) {
    Table kept(60, std::vector<double>(60));
    for (auto& row : kept)
      for (double& entry : row) entry = random.below(one_in) == 0 ? 1 : 0;
    all.push_back(symmetric(random, 60, [&](int64_t i, int64_t j) { return kept[i][j] > 0; }));
  }
  return all;
}

// By elimination without pivoting, which a dominant matrix allows.
Table inverse(Table A) {
  const size_t n = A.size();
  Table Z(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) Z[i][i] = 1;
  for (size_t k = 0; k < n; ++k)
    for (size_t i = 0; i < n; ++i) {
      const double f = i == k ? (A[k][k] - 1) / A[k][k] : A[i][k] / A[k][k];
      for (size_t j = 0; j < n; ++j) {
        Z[i][j] -= f * Z[k][j];
        A[i][j] -= f * A[k][j];
      }
    }
  return Z;
}

Table product(const Table& A, const Table& B) {
  const size_t n = A.size();
  Table C(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k)
      for (size_t j = 0; j < n; ++j) C[i][j] += A[i][k] * B[k][j];
  return C;
}

// Calls f(i, j, p) for each entry of the lower trapezoids: row and column of the matrix, and the place of the value.
template <class F>
void for_each_place(const AssemblyTree& tree, const F& f) {
  std::vector<int64_t> row_at(tree.n);
  for (int64_t k = 0; k < tree.n; ++k) row_at[tree.rank[k]] = k;
  for (int64_t s = 0; s < tree.count(); ++s)
    for (int64_t c = 0; c < tree.columns(s); ++c)
      for (int64_t r = c; r < tree.height(s); ++r)
        f(row_at[tree.rows[tree.row_ptr[s] + r]], row_at[tree.first[s] + c],
          tree.value_ptr[s] + c * tree.height(s) + r);
}

template <class T>
struct Factored {
  AssemblyTree tree;
  std::vector<T> L;
  int64_t broken;
};

template <class T, Host E>
Factored<T> factored(const E& exec, const Symmetric& A, const std::vector<T>& values, Random& random) {
  Factored<T> F{kernels::assembly_tree(A.pattern.view(), random.permutation<int32_t>(A.pattern.rows)), {}, -1};
  F.L = std::vector<T>(F.tree.size());
  F.broken = kernels::factor_cholesky(exec, F.tree, values.data(), F.L.data());
  return F;
}

TYPED_TEST(Multifrontal, TheFactorTimesItsTransposeIsTheMatrix) {
  using T = TypeParam;
  Random random(2);
  for (const Symmetric& A : every_shape()) {
    const int64_t n = A.pattern.rows;
    const auto F = factored<T>(Pool(Serial()), A, A.values<T>(), random);
    ASSERT_EQ(F.broken, -1);
    Table L(n, std::vector<double>(n)), turned = L;
    for_each_place(F.tree, [&](int64_t i, int64_t j, int64_t p) { L[i][j] = turned[j][i] = F.L[p]; });
    const Table got = product(L, turned);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) ASSERT_NEAR(got[i][j], A.dense[i][j], loose<T>) << n << ": " << i << ", " << j;
  }
}

TYPED_TEST(Multifrontal, SolutionsSolve) {
  using T = TypeParam;
  Random random(3);
  for (const Symmetric& A : every_shape())
    for (const int64_t columns : {1, 3, 5, 70}) {
      const int64_t n = A.pattern.rows;
      const auto F = factored<T>(Pool(Serial()), A, A.values<T>(), random);
      const auto b = random.values<T>(n * columns);
      auto x = b;
      kernels::solve_cholesky(Pool(Threads(2)), F.tree, F.L.data(), x.data(), columns);
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t i = 0; i < n; ++i) {
          double sum = 0;
          for (int64_t j = 0; j < n; ++j) sum += A.dense[i][j] * x[c * n + j];
          ASSERT_NEAR(sum, b[c * n + i], loose<T> * 10) << n << ": " << i << ", " << c;
        }
    }
}

TYPED_TEST(Multifrontal, TheSelectedInverseIsTheInverse) {
  using T = TypeParam;
  Random random(4);
  for (const Symmetric& A : every_shape()) {
    const auto F = factored<T>(Pool(Serial()), A, A.values<T>(), random);
    std::vector<T> S(F.L.size());
    kernels::selected_inverse(Pool(Serial()), F.tree, F.L.data(), S.data());
    const Table Z = inverse(A.dense);
    for_each_place(F.tree, [&](int64_t i, int64_t j, int64_t p) { ASSERT_NEAR(S[p], Z[i][j], loose<T> * 10); });
  }
}

TYPED_TEST(Multifrontal, TheTangentIsThatOfTheInverse) {
  using T = TypeParam;
  Random random(5);
  for (const Symmetric& A : every_shape())
    for (const bool skew : {false, true}) {
      const int64_t n = A.pattern.rows;
      Table G(n, std::vector<double>(n));
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j)
          if (A.dense[i][j] != 0 && !(skew && i == j)) G[i][j] = random.real(), G[j][i] = skew ? -G[i][j] : G[i][j];
      const auto F = factored<T>(Pool(Serial()), A, A.values<T>(), random);
      std::vector<T> S(F.L.size()), X(F.L.size());
      kernels::selected_inverse(Pool(Serial()), F.tree, F.L.data(), S.data());
      kernels::inverse_tangent(Pool(Serial()), F.tree, F.L.data(), S.data(), A.values<T>(G).data(), skew, X.data());
      const Table Z = inverse(A.dense), want = product(product(Z, G), Z);
      std::vector<T> on_pattern(A.pattern.nnz());
      kernels::gather(F.tree, X.data(), T(skew ? -1 : 1), on_pattern.data());
      const auto wanted = A.values<T>(want);
      for (size_t p = 0; p < wanted.size(); ++p)
        ASSERT_NEAR(on_pattern[p], -wanted[p], loose<T> * 100) << n << ": " << p;
      for_each_place(F.tree, [&](int64_t i, int64_t j, int64_t p) {
        ASSERT_NEAR(X[p], -want[i][j], loose<T> * 100) << n << (skew ? " skew: " : ": ") << i << ", " << j;
      });
    }
}

TYPED_TEST(Multifrontal, SaysWhichPivotIsNotPositive) {
  using T = TypeParam;
  Random random(6);
  for (const Symmetric& A : every_shape()) {
    const int64_t n = A.pattern.rows;
    if (n == 0) continue;
    const int64_t bad = random.below(n);
    Table dense = A.dense;
    for (const double pivot : {0.0, -1.0, static_cast<double>(NAN)}) {
      dense[bad][bad] = pivot;
      EXPECT_EQ(factored<T>(Pool(Serial()), A, A.values<T>(dense), random).broken, bad) << n;
    }
  }
}

// Nested dissection of a grid: the separator last, its halves before it.
void dissect(int64_t side, int64_t i0, int64_t i1, int64_t j0, int64_t j1, int32_t& next, std::vector<int32_t>& order) {
  if (i0 >= i1 || j0 >= j1) return;
  const bool tall = i1 - i0 > j1 - j0;
  const int64_t middle = tall ? (i0 + i1) / 2 : (j0 + j1) / 2;
  if (tall) {
    dissect(side, i0, middle, j0, j1, next, order), dissect(side, middle + 1, i1, j0, j1, next, order);
    for (int64_t j = j0; j < j1; ++j) order[middle * side + j] = next++;
  } else {
    dissect(side, i0, i1, j0, middle, next, order), dissect(side, i0, i1, middle + 1, j1, next, order);
    for (int64_t i = i0; i < i1; ++i) order[i * side + middle] = next++;
  }
}

TYPED_TEST(Multifrontal, IsBitwiseTheSameForEveryThreadCount) {
  using T = TypeParam;
  constexpr int64_t side = 90, n = side * side;
  std::vector<std::vector<int32_t>> rows(n);
  std::vector<T> values, direction;
  Random random(7);
  for (int32_t i = 0; i < n; ++i)
    for (const int32_t j : {i - int32_t{side}, i - 1, i, i + 1, i + int32_t{side}}) {
      if (j < 0 || j >= n || (i / side != j / side && i % side != j % side)) continue;
      rows[i].push_back(j);
      values.push_back(i == j ? T(4.5) : T(-1));
      direction.push_back(static_cast<T>(random.real()));
    }
  const OwnedPattern<int32_t> pattern(n, rows);
  std::vector<int32_t> order(n);
  int32_t next = 0;
  dissect(side, 0, side, 0, side, next, order);
  const AssemblyTree tree = kernels::assembly_tree(pattern.view(), order);
  const auto all = [&](const auto& exec) {
    std::vector<std::vector<T>> results(4, std::vector<T>(tree.size()));
    EXPECT_EQ(kernels::factor_cholesky(exec, tree, values.data(), results[0].data()), -1);
    kernels::selected_inverse(exec, tree, results[0].data(), results[1].data());
    kernels::inverse_tangent(exec, tree, results[0].data(), results[1].data(), direction.data(), false,
                             results[2].data());
    for (auto& result : results)  // what is above the diagonals is not said
      for (int64_t s = 0; s < tree.count(); ++s)
        for (int64_t c = 0; c < tree.columns(s); ++c)
          std::fill_n(result.begin() + tree.value_ptr[s] + c * tree.height(s), c, T{0});
    results[3] = values;
    results[3].resize(n * 70, T(1));
    kernels::solve_cholesky(exec, tree, results[0].data(), results[3].data(), 70);
    return results;
  };
  const auto want = all(Pool(Serial()));
  const Threads two(2), five(5);
  const Backwards backwards(3);
  const auto on_two = all(Pool(two)), on_five = all(Pool(five)), turned = all(Pool(backwards));
  for (size_t k = 0; k < want.size(); ++k) {
    expect_same_bits(on_two[k], want[k]);
    expect_same_bits(on_five[k], want[k]);
    expect_same_bits(turned[k], want[k]);
  }
  EXPECT_GE(std::min({two.parts, five.parts, backwards.parts}), 2);
}

TEST(AssemblyTree, RefusesWhatItCannotNumber) {
  const PatternView<int64_t> huge{int64_t{1} << 31, int64_t{1} << 31, 0, nullptr, nullptr};
  EXPECT_THROW(kernels::assembly_tree(huge, {}), std::length_error);
  const PatternView<int64_t> wide{2, 3, 0, nullptr, nullptr};
  EXPECT_THROW(kernels::assembly_tree(wide, {0, 1}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer::test
