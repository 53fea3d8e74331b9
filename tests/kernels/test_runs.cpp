// SPDX-License-Identifier: BSD-3-Clause
// Runs of rows: found where a grid or a band repeats itself, and products along them have the bits of the plain loop.
#include <gossamer/kernels/runs.h>

#include <cmath>

#include <gossamer/kernels/sddmm.h>
#include <gossamer/kernels/spmm.h>
#include <gossamer/kernels/transpose.h>
#include <gossamer/kernels/triangular.h>
#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

// The neighbours of a point on a grid of rows × columns, itself included.
template <class I>
OwnedPattern<I> grid(int64_t height, int64_t width, bool corners) {
  std::vector<std::vector<I>> rows(height * width);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t v = std::max<int64_t>(y - 1, 0); v <= std::min(y + 1, height - 1); ++v)
        for (int64_t u = std::max<int64_t>(x - 1, 0); u <= std::min(x + 1, width - 1); ++u)
          if (corners || u == x || v == y) rows[y * width + x].push_back(static_cast<I>(v * width + u));
  return OwnedPattern<I>(height * width, rows);
}

// A band, rows × columns, with offsets; every `gap`-th row is empty, if there is a gap.
template <class I>
OwnedPattern<I> band(int64_t count, int64_t columns, const std::vector<int64_t>& offsets, int64_t gap = 0) {
  std::vector<std::vector<I>> rows(count);
  for (int64_t i = 0; i < count; ++i)
    for (const int64_t offset : offsets)
      if (i + offset >= 0 && i + offset < columns && (gap == 0 || i % gap > 0))
        rows[i].push_back(static_cast<I>(i + offset));
  return OwnedPattern<I>(columns, rows);
}

template <class I>
std::vector<OwnedPattern<I>> patterns_with_runs() {
  std::vector<OwnedPattern<I>> all = {grid<I>(30, 40, false),        grid<I>(25, 60, true),
                                      band<I>(500, 500, {-1, 0, 1}), band<I>(300, 400, {0, 100}),
                                      band<I>(300, 50, {0}),         band<I>(600, 600, {-7, 0, 3}, 60)};
  return all;
}

template <class I>
PatternView<I> with_runs(PatternView<I> A, const std::vector<I>& runs) {
  A.run_count = static_cast<int64_t>(runs.size()) - 1;
  A.runs = runs.data();
  return A;
}

template <class Types>
struct RunsOf : testing::Test {};
TYPED_TEST_SUITE(RunsOf, AllTypes);

TYPED_TEST(RunsOf, ProductsHaveTheBitsOfThePlainLoop) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(70);
  for (const OwnedPattern<I>& A : patterns_with_runs<I>()) {
    const auto runs = kernels::find_runs(A.view());
    ASSERT_FALSE(runs.empty());
    const auto values = random.values<T>(A.nnz()), x = random.values<T>(A.cols), u = random.values<T>(A.rows);
    std::vector<T> want(A.rows), got(A.rows), pairs(A.nnz()), along(A.nnz());
    kernels::spmm(Pool(Serial{}), Csr<T, I>{A.view(), values.data()}, x.data(), 1, 1, want.data());
    kernels::sddmm(Pool(Serial{}), A.view(), 1, u.data(), 1, x.data(), 1, 1, pairs.data());
    for (const int64_t from : {0, 1, 17}) {  // threads begin anywhere in a run
      const Csr<T, I> M{with_runs(A.view(), runs), values.data()};
      const auto plain = [&](int64_t begin, int64_t end) {
        kernels::spmv_range<false>(M, begin, end, x.data(), 1, got.data());
      };
      kernels::spmm_runs<1, false>(M, 0, from, x.data(), got.data(), plain);
      kernels::spmm_runs<1, false>(M, from, A.rows, x.data(), got.data(), plain);
      expect_same_bits(got, want);
      std::fill(got.begin(), got.end(), rounded<T>(NAN));
    }
    kernels::spmm(Pool(Threads(3)), Csr<T, I>{with_runs(A.view(), runs), values.data()}, x.data(), 1, 1, got.data());
    expect_same_bits(got, want);
    kernels::sddmm(Pool(Threads(3)), with_runs(A.view(), runs), 1, u.data(), 1, x.data(), 1, 1, along.data());
    expect_same_bits(along, pairs);
  }
}

// Of a matrix and of a transpose, whose values are read through a permutation: with runs as without them.
TYPED_TEST(RunsOf, NarrowProductsHaveTheBitsOfTiles) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(72);
  for (const OwnedPattern<I>& A : patterns_with_runs<I>())
    for (const int64_t width : {2, 3, 4, 5}) {
      OwnedPattern<I> B(A.rows, std::vector<std::vector<I>>(A.cols));
      B.indices.resize(A.nnz());
      std::vector<I> perm(A.nnz());
      kernels::transpose(A.view(), B.indptr.data(), B.indices.data(), perm.data());
      const auto values = random.values<T>(A.nnz());
      const auto expect_same = [&](const OwnedPattern<I>& P, const I* permutation) {
        const auto runs = kernels::find_runs(P.view(), permutation);
        ASSERT_FALSE(runs.empty());
        const auto X = random.values<T>(P.cols * width);
        std::vector<T> want(P.rows * width), got(P.rows * width);
        const Csr<T, I> without{P.view(), values.data(), 1, permutation};
        const Csr<T, I> with{with_runs(P.view(), runs), values.data(), 1, permutation};
        kernels::spmm(Pool(Serial{}), without, X.data(), width, width, want.data());
        kernels::spmm(Pool(Threads(3)), with, X.data(), width, width, got.data());
        expect_same_bits(got, want);
      };
      expect_same(A, nullptr);
      expect_same(B, perm.data());
    }
}

TYPED_TEST(RunsOf, TransposesReadTheValuesAtEqualSteps) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(71);
  for (const OwnedPattern<I>& A : patterns_with_runs<I>()) {
    OwnedPattern<I> B(A.rows, std::vector<std::vector<I>>(A.cols));
    B.indices.resize(A.nnz());
    std::vector<I> perm(A.nnz());
    kernels::transpose(A.view(), B.indptr.data(), B.indices.data(), perm.data());
    const auto runs = kernels::find_runs(B.view(), perm.data());
    ASSERT_FALSE(runs.empty());
    const auto values = random.values<T>(A.nnz()), x = random.values<T>(A.rows);
    std::vector<T> want(A.cols), got(A.cols);
    kernels::spmm(Pool(Serial{}), Csr<T, I>{B.view(), values.data(), 1, perm.data()}, x.data(), 1, 1, want.data());
    kernels::spmm(Pool(Threads(2)), Csr<T, I>{with_runs(B.view(), runs), values.data(), 1, perm.data()}, x.data(), 1, 1,
                  got.data());
    expect_same_bits(got, want);
  }
}

// Both triangles of grids and bands, and those of their transposes, whose values are read through a permutation.
template <class Types>
struct TrianglesWithRuns : testing::Test {};
using SolvedTypes = testing::Types<Types<float, int64_t>, Types<double, int32_t>>;
TYPED_TEST_SUITE(TrianglesWithRuns, SolvedTypes);

TYPED_TEST(TrianglesWithRuns, AreSolvedWithTheBitsOfPlainRows) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(74);
  for (const OwnedPattern<I>& A :
       {grid<I>(30, 40, false), grid<I>(25, 60, true), band<I>(500, 500, {-1, 0, 1}), band<I>(500, 500, {-9, -3, 0, 4}),
        band<I>(400, 400, {-5, -4, -3, -2, -1, 0}), band<I>(300, 300, {0})}) {
    OwnedPattern<I> B(A.rows, std::vector<std::vector<I>>(A.cols));
    B.indices.resize(A.nnz());
    std::vector<I> perm(A.nnz());
    kernels::transpose(A.view(), B.indptr.data(), B.indices.data(), perm.data());
    std::vector<T> values = random.values<T>(A.nnz());
    for (T& value : values) value /= 16;  // the solution stays bounded, with a unit diagonal, too
    int64_t pivot = -1;                   // of a row in the middle of a run
    for (int64_t i = 0; i < A.rows; ++i)
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
        if (A.indices[p] == i) values[p] += 1, pivot = i == A.rows / 2 ? p : pivot;
    const auto b = random.values<T>(2 * A.rows);
    const auto solved = [&](PatternView<I> L, const I* through, Triangle triangle, std::vector<T>& x) {
      return kernels::solve_triangular(Pool(Threads(2)), Csr<T, I>{L, values.data(), 1, through}, triangle, Levels<I>{},
                                       b.data(), 2, 1, x.data());
    };
    const auto expect_same = [&](const OwnedPattern<I>& P, const I* through, Triangle triangle, int64_t bad) {
      const auto runs = kernels::find_runs(P.view(), through);
      ASSERT_FALSE(runs.empty());
      std::vector<T> want(P.rows, static_cast<T>(NAN)), got = want;
      EXPECT_EQ(solved(P.view(), through, triangle, want), bad);
      EXPECT_EQ(solved(with_runs(P.view(), runs), through, triangle, got), bad);
      if (bad < 0) expect_same_bits(got, want);
    };
    for (const bool upper : {false, true})
      for (const bool unit : {false, true}) {
        expect_same(A, nullptr, {upper, unit}, -1);
        expect_same(B, perm.data(), {upper, unit}, -1);
      }
    values[pivot] = 0;
    for (const bool upper : {false, true}) {
      expect_same(A, nullptr, {upper, false}, A.rows / 2);
      expect_same(B, perm.data(), {upper, false}, A.rows / 2);
    }
  }
}

// More values than the caches hold are asked for ahead, beyond the last one, too.
TEST(Runs, OfManyRowsHaveTheSameBits) {
  Random random(75);
  const auto A = band<int32_t>(50000, 50000, {-1, 0, 1});
  const auto runs = kernels::find_runs(A.view());
  const auto values = random.values<double>(A.nnz()), x = random.values<double>(A.cols);
  ASSERT_TRUE(is_far<double>(A.nnz()));
  std::vector<double> want(A.rows), got(A.rows);
  kernels::spmm(Pool(Serial{}), Csr<double, int32_t>{A.view(), values.data()}, x.data(), 1, 1, want.data());
  kernels::spmm(Pool(Threads(3)), Csr<double, int32_t>{with_runs(A.view(), runs), values.data()}, x.data(), 1, 1,
                got.data());
  expect_same_bits(got, want);
}

TEST(Runs, AreTheRowsThatRepeatEachOther) {
  const auto A = band<int32_t>(100, 100, {-1, 0, 1});
  EXPECT_EQ(kernels::find_runs(A.view()), (std::vector<int32_t>{0, 1, 99, 100}));
  const auto grid_runs = kernels::find_runs(grid<int32_t>(20, 30, false).view());
  EXPECT_EQ(grid_runs.size(), 20 * 3 + 1);  // of each row of the grid the first point, the middle and the last
}

TEST(Runs, AreNotKeptWhereTheyAreShort) {
  Random random(72);
  EXPECT_TRUE(kernels::find_runs(random_pattern<int32_t>(random, 200, 200, 0.05).view()).empty());
  EXPECT_TRUE(kernels::find_runs(power_law_pattern<int32_t>(200, 2000).view()).empty());
  EXPECT_TRUE(kernels::find_runs(band<int32_t>(300, 300, {0, 1}, 4).view()).empty());
  EXPECT_TRUE(kernels::find_runs(random_pattern<int32_t>(random, 0, 5, 0.5).view()).empty());
  const auto wide = band<int32_t>(300, 300, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});  // more entries than a run may have
  EXPECT_TRUE(kernels::find_runs(wide.view()).empty());
}

// A result larger than the caches, whose rows are whole registers, is streamed; a row longer or an address off is not.
TEST(Streamed, HasTheBitsOfOrdinaryStores) {
  if (!GOSSAMER_STREAMS) GTEST_SKIP() << "this compiler, or this processor, has no streaming stores here";
  Random random(73);
  const int64_t rows = last_cache_bytes() / (64 * 8) + 100;
  const auto A = band<int32_t>(rows, rows, {-1, 0, 1});
  const std::vector<double> values = random.values<double>(A.nnz()), X(rows * 64, 0.5);
  std::vector<double> room(rows * 64 + 16, NAN);
  double* Y = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64 / 8;
  ASSERT_TRUE(streams(Y, rows * 64, 64));
  ASSERT_FALSE(streams(Y + 1, rows * 64, 64));
  ASSERT_FALSE(streams(Y, rows * 64, 63));
  const Csr<double, int32_t> M{A.view(), values.data()};
  kernels::spmm(Pool(Threads(2)), M, X.data(), 64, 64, Y);
  std::vector<double> few(100 * 64);
  PatternView<int32_t> top = A.view();  // the first rows alone: small, and so not streamed
  top.rows = 100, top.nnz = A.indptr[100];
  kernels::spmm(Pool(Serial{}), Csr<double, int32_t>{top, values.data()}, X.data(), 64, 64, few.data());
  expect_same_bits(std::vector<double>(Y, Y + few.size()), few);
  for (int64_t i = 1; i + 1 < rows; i += 997)
    for (const int64_t c : {0, 33, 63}) {
      double sum = 0;
      for (int64_t k = -1; k <= 1; ++k) sum += values[3 * i + k] * X[(i + k) * 64 + c];
      EXPECT_NEAR(Y[i * 64 + c], sum, 1e-12);
    }
}

}  // namespace
}  // namespace gossamer::test
