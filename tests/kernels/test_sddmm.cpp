// SPDX-License-Identifier: BSD-3-Clause
// sddmm against the dense product U Vᵀ, at the level GOSSAMER_SIMD chose (CTest runs all three).
#include <gossamer/kernels/sddmm.h>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

template <class T, class I>
struct Sampled {
  OwnedPattern<I> A;
  int64_t heads, width, ldu, ldv;
  std::vector<T> U, V;

  Sampled(Random& random, const OwnedPattern<I>& pattern, int64_t heads_, int64_t width_, int64_t padding_u = 0,
          int64_t padding_v = 0)
      : A(pattern), heads(heads_), width(width_), ldu(heads * width + padding_u), ldv(heads * width + padding_v) {
    U = random.template strided<T>(A.rows, heads * width, ldu);
    V = random.template strided<T>(A.cols, heads * width, ldv);
  }
  std::vector<T> run(const Pool& exec = Threads(1)) const {
    std::vector<T> values(A.nnz() * heads, rounded<T>(NAN));  // every element is to be written
    kernels::sddmm(exec, A.view(), heads, U.data(), ldu, V.data(), ldv, width, values.data());
    return values;
  }
  void expect_as_dense() const {
    SCOPED_TRACE(testing::Message() << A.rows << " x " << A.cols << ", nnz " << A.nnz() << ", heads " << heads
                                    << ", width " << width << ", ldu " << ldu << ", ldv " << ldv);
    const auto wanted = dense_sddmm(A.view(), heads, U, ldu, V, ldv, width);
    expect_close(run(), wanted);
    std::vector<T> plain(A.nnz() * heads, rounded<T>(NAN));
    kernels::plain::sddmm(A.view(), heads, U.data(), ldu, V.data(), ldv, width, plain.data());
    expect_close(plain, wanted);
  }
};

template <class Pair>
struct Sddmm : testing::Test {};
TYPED_TEST_SUITE(Sddmm, AllTypes);

TYPED_TEST(Sddmm, EqualsDenseAtAllWidths) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(20);
  const auto A = random_pattern<I>(random, 22, 17, 0.3);
  for (const int64_t width : {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 128, 130, 200})
    for (const int64_t heads : {1, 3, 8})
      for (const int64_t padding : {0, 5})
        if (padding == 0 || width < 40) Sampled<T, I>(random, A, heads, width, padding, 2 * padding).expect_as_dense();
}

TYPED_TEST(Sddmm, RowsOfVFarApart) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(21);
  const auto A = random_pattern<I>(random, 40, 30, 0.2);
  for (const int64_t width : {1, 19, 130})
    for (const int64_t heads : {1, 3})  // more than 1 MB: with prefetch
      Sampled<T, I>(random, A, heads, width, 3, 20000).expect_as_dense();
}

TYPED_TEST(Sddmm, OddShapes) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(22);
  std::vector<I> all(3000);
  for (I j = 0; j < 3000; ++j) all[j] = j;
  const OwnedPattern<I> shapes[] = {{0, {}},
                                    {5, {}},
                                    {0, {{}, {}}},
                                    {7, {{}, {}, {}}},
                                    {1, {{0}, {}, {0}}},
                                    {4, {{1, 3}}},
                                    {3000, {{}, all, {2999}}}};
  for (const auto& A : shapes)
    for (const int64_t width : {0, 1, 6, 33})
      for (const int64_t heads : {1, 3}) Sampled<T, I>(random, A, heads, width).expect_as_dense();
}

TYPED_TEST(Sddmm, StrideZero) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(23);
  const auto A = random_pattern<I>(random, 10, 12, 0.3);
  Sampled<T, I> problem(random, A, 3, 21);
  problem.ldu = 0;
  problem.U = random.values<T>(3 * 21);
  problem.expect_as_dense();
  std::swap(problem.U, problem.V);
  std::swap(problem.ldu, problem.ldv);
  problem.U = random.values<T>(10 * 3 * 21);
  problem.expect_as_dense();
}

TYPED_TEST(Sddmm, BitwiseTheSameOnEveryExecutor) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(24);
  const auto A = power_law_pattern<I>(900, 700);
  for (const int64_t width : {33, 64}) {
    const Sampled<T, I> problem(random, A, 3, width, 1, 2);
    const auto want = problem.run();
    for (const int64_t threads : {1, 2, 3, 7}) {
      const Threads exec(threads);
      expect_same_bits(problem.run(exec), want);
      EXPECT_EQ(exec.parts, threads);
    }
  }
}

// A NaN in row i of U reaches the entries of row i, one in row j of V those of column j, wherever it is in the row;
// in one head only.
TYPED_TEST(Sddmm, NanGoesWhereItShould) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(25);
  const OwnedPattern<I> A(3, {{0, 1}, {0, 2}, {}, {1}});
  const bool in_row_1[] = {false, false, true, true, false}, in_column_1[] = {false, true, false, false, true};
  for (const int64_t width : {1, 5, 16, 17, 67}) {
    Sampled<T, I> problem(random, A, 2, width);
    for (int64_t c = 0; c < width; ++c)
      for (const bool in_u : {true, false}) {
        T& place = (in_u ? problem.U : problem.V)[2 * width + width + c];  // row 1, head 1
        const T before = std::exchange(place, rounded<T>(NAN));
        const auto values = problem.run();
        for (int64_t p = 0; p < 5; ++p) {
          EXPECT_FALSE(std::isnan(Sum<T>(values[2 * p])));
          EXPECT_EQ(std::isnan(Sum<T>(values[2 * p + 1])), in_u ? in_row_1[p] : in_column_1[p])
              << "width " << width << ", column " << c << ", entry " << p;
        }
        place = before;
      }
  }
}

TYPED_TEST(Sddmm, InfinityFollowsTheArithmetic) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(26);
  const OwnedPattern<I> A(3, {{0, 1, 2}});
  for (const int64_t width : {2, 5, 17, 67}) {
    Sampled<T, I> problem(random, A, 1, width);
    for (T& u : problem.U) u = rounded<T>(1);
    for (T& v : problem.V) v = rounded<T>(2);
    problem.V[0] = rounded<T>(-INFINITY);
    problem.V[width] = rounded<T>(INFINITY);
    problem.V[2 * width - 1] = rounded<T>(-INFINITY);
    const auto values = problem.run();
    EXPECT_EQ(Sum<T>(values[0]), -INFINITY);
    EXPECT_TRUE(std::isnan(Sum<T>(values[1])));  // ∞ - ∞
    EXPECT_EQ(Sum<T>(values[2]), static_cast<Sum<T>>(2 * width));
  }
}

// 16-bit sums live in float: 300 ones are 300, though 256 + 1 = 256 in bfloat16; what exceeds float16 may come back.
TYPED_TEST(Sddmm, RoundsOnce) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(27);
  Sampled<T, I> problem(random, {2, {{0, 1}}}, 1, 300);
  for (T& u : problem.U) u = rounded<T>(1);
  for (T& v : problem.V) v = rounded<T>(1);
  for (int64_t c = 0; c < 300; ++c) problem.V[300 + c] = rounded<T>(c < 100 ? 1024 : c < 200 ? -1024 : 0);
  const auto values = problem.run();
  EXPECT_EQ(Sum<T>(values[0]), Sum<T>(300));
  EXPECT_EQ(Sum<T>(values[1]), Sum<T>(0));
}

}  // namespace
}  // namespace gossamer::test
