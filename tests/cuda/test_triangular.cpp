// SPDX-License-Identifier: BSD-3-Clause
// Triangular solves without barriers and level by level, on chains, dense triangles and rows that need nothing, against
// the plain loops of triangular.h; and what is kept of a matrix by a triangle.
#include "triangular.cuh"

#include <gossamer/kernels/transpose.h>
#include "matrix.h"

namespace gossamer::test {
namespace {

struct Shape {
  int64_t n;
  int share;  // of a hundred places that are stored, in both triangles
  int64_t heads, width;
  bool chain = true, arrow = false;  // each row needs its neighbours; the first and last row are full
};

std::vector<Shape> shapes() {
  if (under_tsan) return {{12, 20, 1, 1}, {6, 30, 2, 17}, {8, 0, 1, 1, false, true}};
  return {{0, 0, 1, 1},
          {1, 100, 1, 1},
          {33, 100, 1, 1},
          {90, 8, 1, 1},
          {150, 2, 1, 1},
          {90, 8, 1, 5},
          {60, 20, 3, 11},
          {33, 100, 2, 1},
          {40, 30, 1, 70},
          {50, 10, 1, 32},
          {20, 50, 0, 3},
          {20, 50, 2, 0},
          {700, 0, 1, 1, false},
          {300, 1, 1, 1, false},
          {90, 3, 2, 20, false},
          {1100, 0, 1, 1, false, true},
          {1040, 0, 1, 3, false, true}};
}

// Square, with a diagonal of at least 4 in size and, unless nothing else is wanted, a chain through all rows, so that
// each waits for the one before.
template <class T, class I>
struct Square {
  int64_t n, heads;
  std::vector<I> indptr{0}, indices, perm;
  std::vector<T> values;

  Square(const Shape& shape, bool permuted, std::mt19937& random) : n(shape.n), heads(shape.heads) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j)
        if (j == i || (shape.chain && (j == i - 1 || j == i + 1)) || (shape.arrow && (i == 0 || i == n - 1)) ||
            static_cast<int>(random() % 100) < shape.share)
          indices.push_back(static_cast<I>(j));
      indptr.push_back(static_cast<I>(indices.size()));
    }
    indices.shrink_to_fit(), indptr.shrink_to_fit();
    perm.resize(indices.size());
    std::iota(perm.begin(), perm.end(), I{0});
    if (permuted) std::shuffle(perm.begin(), perm.end(), random);
    values.resize(indices.size() * heads);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p)
        for (int64_t h = 0; h < heads; ++h)
          values[perm[p] * heads + h] =
              static_cast<T>(random() % 1000) / 1000 / static_cast<T>(n) + (indices[p] == i ? T(4) : T(0));
  }
  Csr<T, I> csr() const {
    return {
        {n, n, static_cast<int64_t>(indices.size()), indptr.data(), indices.data()}, values.data(), heads, perm.data()};
  }
};

// What the op makes of it: x, and the first row that cannot be solved.
template <class T, class I>
std::pair<std::vector<T>, int64_t> solved(const Csr<T, I>& L, Triangle triangle, const std::vector<T>& b, int64_t ldb,
                                          int64_t width) {
  const int64_t total = L.heads * width, tiles = (total + 31) / 32;
  std::vector<T> x = not_numbers<T>(L.rows * total);
  std::vector<int> ready(L.rows * tiles, 0);
  unsigned long long tickets = 0, bad = static_cast<unsigned long long>(L.rows);
  kernels::solve_triangular(Cuda{}, L, triangle, b.data(), ldb, width, x.data(), {&tickets, ready.data(), &bad});
  return {x, static_cast<int64_t>(bad)};
}

// The same level by level. `of` is the triangle whose levels are taken; a transposed solve walks them backward.
template <class T, class I>
std::pair<std::vector<T>, int64_t> solved_by_levels(const Csr<T, I>& L, Triangle triangle, const PatternView<I>& of,
                                                    bool backward, const std::vector<T>& b, int64_t ldb,
                                                    int64_t width) {
  std::vector<I> level_ptr(L.rows + 1), order(L.rows);
  kernels::levels(of, triangle.upper != backward, level_ptr.data(), order.data());
  std::vector<T> x = not_numbers<T>(L.rows * L.heads * width);
  unsigned long long bad = static_cast<unsigned long long>(L.rows);
  kernels::solve_triangular(Cuda{}, L, triangle, Levels<I>{level_ptr.data(), order.data(), backward}, b.data(), ldb,
                            width, x.data(), &bad);
  return {x, static_cast<int64_t>(bad)};
}

template <class Types>
struct TriangularOfReal : testing::Test {};
using RealTypes = testing::Types<std::pair<float, int32_t>, std::pair<double, int64_t>>;
TYPED_TEST_SUITE(TriangularOfReal, RealTypes);

TYPED_TEST(TriangularOfReal, CudaEqualsPlainLoops) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  uint64_t turn = 0;
  for (const Shape& shape : shapes())
    for (const Triangle triangle : {Triangle{false, false}, {true, false}, {false, true}, {true, true}}) {
      std::mt19937 random(static_cast<unsigned>(++turn));
      const Square<T, I> L(shape, turn % 2, random);
      const int64_t total = shape.heads * shape.width, ldb = std::max<int64_t>(total, 1) + turn % 3;
      const auto b = dense_rows<T>(shape.n, total, ldb, random);
      std::vector<T> wanted(shape.n * total);
      kernels::plain::solve_triangular(L.csr(), triangle, b.data(), ldb, shape.width, wanted.data());
      schedule(turn);
      const auto [x, bad] = solved(L.csr(), triangle, b, ldb, shape.width);
      EXPECT_EQ(bad, shape.n);
      for (size_t k = 0; k < x.size(); ++k)
        ASSERT_NEAR(x[k], wanted[k], 1e-5 * (1 + std::abs(wanted[k]))) << shape.n << ", turn " << turn;
      if (under_tsan && shape.chain) continue;  // a launch a row
      const auto by_levels = solved_by_levels(L.csr(), triangle, L.csr(), false, b, ldb, shape.width);
      EXPECT_TRUE(same_bits(by_levels.first, x));
      EXPECT_EQ(by_levels.second, bad);
    }
}

// Lᵀ x = b with the levels of L, from the last to the first.
TEST(Triangular, LevelsServeTheTranspose) {
  const int64_t n = under_tsan ? 8 : 60;
  for (const bool upper : {false, true}) {
    std::mt19937 random(9);
    const Square<double, int32_t> L({n, 10, 1, 2, false}, false, random);
    const Csr<double, int32_t> A = L.csr();
    std::vector<int32_t> indptr(n + 1), indices(A.nnz), perm(A.nnz);
    kernels::transpose(static_cast<PatternView<int32_t>>(A), indptr.data(), indices.data(), perm.data());
    const Csr<double, int32_t> At{{n, n, A.nnz, indptr.data(), indices.data()}, A.values, 1, perm.data()};
    const auto b = dense_rows<double>(n, 2, 2, random);
    std::vector<double> wanted(n * 2);
    kernels::plain::solve_triangular(At, {!upper, false}, b.data(), 2, 2, wanted.data());
    schedule(7);
    const auto [x, bad] = solved_by_levels<double, int32_t>(At, {!upper, false}, A, true, b, 2, 2);
    EXPECT_EQ(bad, n);
    for (size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], wanted[k], 1e-12);
  }
}

TEST(Triangular, TheSameBitsForEverySchedule) {
  const int64_t n = under_tsan ? 12 : 60;
  for (const Shape& shape : {Shape{n, 15, 1, 1}, Shape{n / 2, 15, 2, 20}}) {
    std::mt19937 random(4);
    const Square<float, int32_t> L(shape, false, random);
    const auto b = dense_rows<float>(shape.n, shape.heads * shape.width, shape.heads * shape.width, random);
    std::vector<float> first;
    for (uint64_t seed = 0; seed < (under_tsan ? 2 : 24); ++seed) {
      schedule(seed);
      const auto x = solved(L.csr(), {}, b, shape.heads * shape.width, shape.width).first;
      if (first.empty()) first = x;
      EXPECT_TRUE(same_bits(x, first));
    }
  }
}

TEST(Triangular, NamesTheFirstRowWithoutAPivot) {
  const int64_t n = under_tsan ? 9 : 30, first = n / 3;
  for (const int64_t width : {1, 3}) {
    std::mt19937 random(5);
    Square<double, int32_t> L({n, 20, 1, width}, false, random);
    for (const int64_t row : {first, 2 * first})
      for (int64_t p = L.indptr[row]; p < L.indptr[row + 1]; ++p)
        if (L.indices[p] == row) L.values[p] = 0;
    const auto b = dense_rows<double>(n, width, width, random);
    EXPECT_EQ(solved(L.csr(), {}, b, width, width).second, first);
    EXPECT_EQ((solved_by_levels<double, int32_t>(L.csr(), {}, L.csr(), false, b, width, width).second), first);
    EXPECT_EQ(solved(L.csr(), {true, false}, b, width, width).second, first);
    EXPECT_EQ(solved(L.csr(), {false, true}, b, width, width).second, n);  // not read
  }
}

template <class>
struct KeptOfType : testing::Test {};
TYPED_TEST_SUITE(KeptOfType, AllTypes);

TYPED_TEST(KeptOfType, EqualsTheHost) {
  using T = typename TypeParam::Value;
  using I = typename TypeParam::Index;
  uint64_t turn = 0;
  for (const int64_t heads : {1, 3})
    for (const Triangle triangle : {Triangle{false, false}, {true, false}, {false, true}, {true, true}}) {
      std::mt19937 random(static_cast<unsigned>(++turn));
      const Matrix<T, I> A({0, 1, 5, 33, 70, 2}, 70, heads, false, random);
      std::vector<T> wanted = not_numbers<T>(A.nnz() * heads), got = wanted;
      schedule(turn);
      kernels::keep_triangle(Serial{}, A.pattern(), triangle, heads, A.csr().values, wanted.data());
      kernels::keep_triangle(Cuda{}, A.pattern(), triangle, heads, A.csr().values, got.data());
      EXPECT_TRUE(same_bits(got, wanted));
    }
}

TYPED_TEST(TriangularOfReal, LevelsAreThoseOfTheHost) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  std::mt19937 random(3);
  for (const Shape& shape : shapes())
    for (const bool upper : {false, true}) {
      const Square<T, I> A(shape, /*permuted=*/false, random);
      std::vector<I> level_ptr(A.n + 1), order(A.n);
      kernels::levels<I>(A.csr(), upper, level_ptr.data(), order.data());
      for (uint64_t seed = 0; seed < (under_tsan ? 2 : A.n < 100 ? 24 : 3); ++seed) {
        schedule(seed);
        std::vector<I> level(A.n, I{-1});
        std::vector<int> ready(A.n, 0);
        unsigned long long tickets = 0;
        kernels::find_levels<I>(Cuda{}, A.csr(), upper, level.data(), {&tickets, ready.data(), nullptr});
        for (int64_t l = 0; l < A.n; ++l)
          for (int64_t k = level_ptr[l]; k < level_ptr[l + 1]; ++k) ASSERT_EQ(level[order[k]], l);
      }
    }
}

}  // namespace
}  // namespace gossamer::test
