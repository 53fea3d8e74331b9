// SPDX-License-Identifier: BSD-3-Clause
// The triangular solve: T x = b to rounding, the same bits for every executor, the first row that has no pivot.
#include <gossamer/kernels/triangular.h>

#include <set>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

// n rows, each with its diagonal and up to `far` entries on either side of it.
template <class I>
OwnedPattern<I> banded(Random& random, int64_t n, int64_t far) {
  std::vector<std::vector<I>> rows(n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = std::max<int64_t>(0, i - far); j <= std::min(n - 1, i + far); ++j)
      if (i == j || random.below(3) == 0) rows[i].push_back(static_cast<I>(j));
  return OwnedPattern<I>(n, rows);
}

// n rows, each with its diagonal and `degree` entries anywhere; of each hundred rows one has its neighbours as well.
template <class I>
OwnedPattern<I> scattered(Random& random, int64_t n, int64_t degree) {
  std::vector<std::vector<I>> rows(n);
  for (int64_t i = 0; i < n; ++i) {
    std::set<I> columns = {static_cast<I>(i)};
    for (int64_t k = 0; k < degree; ++k) columns.insert(static_cast<I>(random.below(n)));
    if (i % 100 == 1) columns.insert({static_cast<I>(i - 1), static_cast<I>(std::min(i + 1, n - 1))});
    rows[i].assign(columns.begin(), columns.end());
  }
  return OwnedPattern<I>(n, rows);
}

struct Shape {
  int64_t n, far, heads, width;
};

template <class T, class I>
struct Solve {
  OwnedPattern<I> L;
  Shape size;
  Triangle triangle;
  std::vector<T> values, b;
  std::vector<I> level_ptr, order;

  Solve(Random& random, Shape shape, Triangle which)
      : Solve(random, banded<I>(random, shape.n, shape.far), shape, which) {}
  Solve(Random& random, OwnedPattern<I> pattern, Shape shape, Triangle which)
      : L(std::move(pattern)), size(shape), triangle(which), level_ptr(shape.n + 1), order(shape.n) {
    values = random.template values<T>(L.nnz() * size.heads);
    for (int64_t i = 0; i < size.n; ++i)
      for (int64_t p = L.indptr[i]; p < L.indptr[i + 1]; ++p)
        for (int64_t h = 0; h < size.heads; ++h)
          if (L.indices[p] == i) values[p * size.heads + h] += static_cast<T>(2 * size.far + 2);
    b = random.template strided<T>(size.n, size.heads * size.width, ldb());
    kernels::levels(L.view(), triangle.upper, level_ptr.data(), order.data());
  }
  int64_t ldb() const { return size.heads * size.width + 3; }

  std::vector<T> run(const Pool& exec, int64_t wanted = -1) const {
    std::vector<T> x(size.n * size.heads * size.width, static_cast<T>(NAN));
    const Csr<T, I> A{L.view(), values.data(), size.heads, nullptr};
    const Levels<I> known{level_ptr.data(), order.data(), false};
    EXPECT_EQ(kernels::solve_triangular(exec, A, triangle, known, b.data(), ldb(), size.width, x.data()), wanted);
    return x;
  }

  std::vector<T> plain() const {
    std::vector<T> x(size.n * size.heads * size.width, static_cast<T>(NAN));
    kernels::plain::solve_triangular(Csr<T, I>{L.view(), values.data(), size.heads, nullptr}, triangle, b.data(), ldb(),
                                     size.width, x.data());
    return x;
  }

  void expect_solved(const std::vector<T>& x) const {
    const int64_t step = size.heads * size.width;
    for (int64_t i = 0; i < size.n; ++i)
      for (int64_t c = 0; c < step; ++c) {
        long double sum = triangle.unit_diagonal ? x[i * step + c] : T{0}, most = std::abs(sum);
        for (int64_t p = L.indptr[i]; p < L.indptr[i + 1]; ++p) {
          const int64_t j = L.indices[p];
          if (j == i ? triangle.unit_diagonal : triangle.upper ? j < i : j > i) continue;
          const long double term = static_cast<long double>(values[p * size.heads + c / size.width]) * x[j * step + c];
          sum += term;
          most += std::abs(term);
        }
        const long double allowed = (2 * size.far + 4) * std::numeric_limits<T>::epsilon() * most;
        ASSERT_LE(std::abs(sum - b[i * ldb() + c]), allowed) << "row " << i << ", column " << c;
      }
  }
};

template <class Pair>
struct Triangular : testing::Test {};
using Wide = testing::Types<Types<float, int64_t>, Types<double, int32_t>>;
TYPED_TEST_SUITE(Triangular, Wide);

TYPED_TEST(Triangular, SolvesEveryShapeOfRightHandSide) {
  Random random(1);
  for (const bool upper : {false, true})
    for (const bool unit : {false, true})
      for (const Shape shape : {Shape{0, 0, 1, 1},
                                {1, 0, 1, 1},
                                {60, 3, 1, 1},
                                {60, 1, 1, 2},
                                {40, 4, 1, 9},
                                {40, 4, 1, 40},
                                {30, 2, 3, 1},
                                {30, 2, 2, 5},
                                {10, 2, 1, 0}}) {
        Solve<typename TypeParam::T, typename TypeParam::I> solve(random, shape, {upper, unit});
        if (unit)  // keep the solution bounded: the diagonal no longer outweighs the row
          for (auto& value : solve.values) value /= 16;
        solve.expect_solved(solve.run(Serial{}));
        solve.expect_solved(solve.plain());
      }
}

TYPED_TEST(Triangular, ThreadsAndOrderDoNotMatter) {
  Random random(2);
  for (const bool upper : {false, true})
    for (const Shape shape : {Shape{5000, 0, 1, 1}, {40000, 0, 1, 1}, {3000, 4, 1, 33}, {3000, 4, 5, 3}}) {
      const Solve<typename TypeParam::T, typename TypeParam::I> solve(random, shape, {upper, false});
      const auto wanted = solve.run(Serial{});
      for (const int64_t count : {2, 3}) {
        const Threads threads(count);
        EXPECT_EQ(solve.run(threads), wanted);
        EXPECT_EQ(solve.run(Backwards(count)), wanted);
        EXPECT_TRUE(shape.n == 5000 || threads.parts > 1);
      }
    }
}

TYPED_TEST(Triangular, ChunksOfGraphsWaitForEachOther) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(5);
  for (const bool upper : {false, true}) {
    Solve<T, I> solve(random, scattered<I>(random, 20000, 6), {20000, 8, 1, 1}, {upper, false});
    ASSERT_TRUE(upper ? kernels::seldom_needs_neighbours<true>(solve.L.view())
                      : kernels::seldom_needs_neighbours<false>(solve.L.view()));
    const auto wanted = solve.run(Serial{});
    solve.expect_solved(wanted);
    for (const int64_t count : {2, 3, 8}) {
      EXPECT_EQ(solve.run(Threads(count)), wanted);
      EXPECT_EQ(solve.run(Backwards(count)), wanted);
    }
    int64_t p = solve.L.indptr[777];
    while (solve.L.indices[p] != 777) ++p;
    solve.values[p] = 0;
    solve.run(Threads(3), 777);
  }
}

TYPED_TEST(Triangular, NamesTheFirstRowWithoutAPivot) {
  Random random(3);
  for (const bool upper : {false, true})
    for (const int64_t width : {1, 30}) {
      Solve<typename TypeParam::T, typename TypeParam::I> solve(random, {4000, 2, 1, width}, {upper, false});
      for (const int64_t row : {3999, 2000, 7}) {
        int64_t p = solve.L.indptr[row];
        while (solve.L.indices[p] != row) ++p;
        solve.values[p] = 0;
        solve.run(Serial{}, row);
        solve.run(Threads(3), row);
      }
    }
}

TEST(Levels, RowsNeedOnlyEarlierLevels) {
  Random random(4);
  const auto L = banded<int32_t>(random, 200, 5);
  for (const bool upper : {false, true}) {
    std::vector<int32_t> level_ptr(201), order(200), level(200, -1);
    kernels::levels(L.view(), upper, level_ptr.data(), order.data());
    EXPECT_EQ(level_ptr[200], 200);
    for (int64_t l = 0; l < 200; ++l)
      for (int32_t k = level_ptr[l]; k < level_ptr[l + 1]; ++k) level[order[k]] = static_cast<int32_t>(l);
    for (int64_t i = 0; i < 200; ++i)
      for (int32_t p = L.indptr[i]; p < L.indptr[i + 1]; ++p)
        EXPECT_TRUE((upper ? L.indices[p] <= i : L.indices[p] >= i) || level[L.indices[p]] < level[i]);
  }
}

}  // namespace
}  // namespace gossamer::test
