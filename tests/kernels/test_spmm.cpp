// SPDX-License-Identifier: BSD-3-Clause
// spmm against the dense product, at the level GOSSAMER_SIMD chose (CTest runs all three).
#include <gossamer/kernels/spmm.h>

#include <sys/mman.h>

#include <gossamer/kernels/transpose.h>
#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

template <class T, class I>
struct Product {
  OwnedPattern<I> A;
  int64_t heads, width, ldx;
  std::vector<T> values, X;
  std::vector<I> perm = {};  // empty: none

  Product(Random& random, const OwnedPattern<I>& pattern, int64_t heads_, int64_t width_, int64_t padding = 0)
      : A(pattern), heads(heads_), width(width_), ldx(heads * width + padding) {
    values = random.template values<T>(A.nnz() * heads);
    X = random.template strided<T>(A.cols, heads * width, ldx);
  }
  Csr<T, I> csr() const { return {A.view(), values.data(), heads, perm.empty() ? nullptr : perm.data()}; }

  std::vector<T> run(const Pool& exec = Threads(1)) const {
    std::vector<T> Y(A.rows * heads * width, rounded<T>(NAN));  // every element is to be written
    kernels::spmm(exec, csr(), X.data(), ldx, width, Y.data());
    return Y;
  }
  void expect_as_dense() const {
    SCOPED_TRACE(testing::Message() << A.rows << " x " << A.cols << ", nnz " << A.nnz() << ", heads " << heads
                                    << ", width " << width << ", ldx " << ldx);
    const auto wanted = dense_spmm(csr(), X, ldx, width);
    expect_close(run(), wanted);
    std::vector<T> plain(A.rows * heads * width, rounded<T>(NAN));
    kernels::plain::spmm(csr(), X.data(), ldx, width, plain.data());
    expect_close(plain, wanted);
  }
};

template <class Pair>
struct Spmm : testing::Test {};
TYPED_TEST_SUITE(Spmm, AllTypes);

TYPED_TEST(Spmm, EqualsDenseAtAllWidths) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(10);
  const auto A = random_pattern<I>(random, 22, 17, 0.3);
  for (const int64_t width : {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 128, 130, 200})
    for (const int64_t heads : {1, 3, 8})
      for (const int64_t padding : {0, 5})
        if (padding == 0 || width < 40) Product<T, I>(random, A, heads, width, padding).expect_as_dense();
}

TYPED_TEST(Spmm, RowsOfXFarApart) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(11);
  const auto A = random_pattern<I>(random, 40, 30, 0.2);
  for (const int64_t width : {1, 19, 130})
    for (const int64_t heads : {1, 3}) {
      Product<T, I> problem(random, A, heads, width, 20000);  // more than 1 MB: with prefetch
      problem.expect_as_dense();
    }
}

TYPED_TEST(Spmm, ValuesThroughAPermutation) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(12);
  const auto A = random_pattern<I>(random, 30, 40, 0.3);
  for (const int64_t heads : {1, 3, 8}) {
    Product<T, I> problem(random, A, heads, 11, 2);
    problem.perm = random.permutation<I>(A.nnz());
    problem.expect_as_dense();
  }
}

TYPED_TEST(Spmm, OddShapes) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(13);
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
      for (const int64_t heads : {1, 3}) Product<T, I>(random, A, heads, width).expect_as_dense();
}

// All rows of X the same one, as a broadcast tensor has them.
TYPED_TEST(Spmm, StrideZero) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(14);
  const auto A = random_pattern<I>(random, 10, 12, 0.3);
  Product<T, I> problem(random, A, 3, 21);
  problem.ldx = 0;
  problem.X = random.values<T>(3 * 21);
  problem.expect_as_dense();
}

TYPED_TEST(Spmm, BitwiseTheSameOnEveryExecutor) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(15);
  const auto A = power_law_pattern<I>(900, 700);
  for (const int64_t width : {33, 64}) {
    const Product<T, I> problem(random, A, 3, width, 1);
    const auto want = problem.run();
    for (const int64_t threads : {1, 2, 3, 7}) {
      const Threads exec(threads);
      expect_same_bits(problem.run(exec), want);
      EXPECT_EQ(exec.parts, threads);
    }
  }
}

// A NaN at X[j, c] reaches Y[i, c] for the rows i with an entry at j, stored zeros included, and nothing else.
TYPED_TEST(Spmm, NanGoesWhereItShould) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(16);
  const OwnedPattern<I> A(3, {{0, 1}, {0, 2}, {}, {1}});
  for (const int64_t width : {1, 5, 16, 17, 131}) {
    Product<T, I> problem(random, A, 1, width);
    problem.values[1] = rounded<T>(0);
    for (int64_t c = 0; c < width; ++c) {
      const T before = std::exchange(problem.X[width + c], rounded<T>(NAN));
      const auto Y = problem.run();
      for (int64_t k = 0; k < 4 * width; ++k)
        ASSERT_EQ(std::isnan(Sum<T>(Y[k])), k % width == c && (k / width == 0 || k / width == 3))
            << "width " << width << ", row " << k / width << ", column " << k % width;
      problem.X[width + c] = before;
    }
  }
}

TYPED_TEST(Spmm, InfinityFollowsTheArithmetic) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(17);
  const OwnedPattern<I> A(3, {{0}, {1}, {0, 1}, {2}, {0, 2}});
  for (const int64_t width : {1, 5, 17, 131}) {
    Product<T, I> problem(random, A, 1, width);
    const double X[] = {INFINITY, -INFINITY, 1}, values[] = {-2, -2, 1, 1, 3, 0, 4};
    for (int64_t k = 0; k < 3 * width; ++k) problem.X[k] = rounded<T>(X[k / width]);
    for (int64_t p = 0; p < 7; ++p) problem.values[p] = rounded<T>(values[p]);
    const auto Y = problem.run();
    for (int64_t c = 0; c < width; ++c) {
      EXPECT_EQ(Sum<T>(Y[c]), -INFINITY);
      EXPECT_EQ(Sum<T>(Y[width + c]), INFINITY);
      EXPECT_TRUE(std::isnan(Sum<T>(Y[2 * width + c])));  // ∞ - ∞
      EXPECT_EQ(Sum<T>(Y[3 * width + c]), Sum<T>(3));
      EXPECT_TRUE(std::isnan(Sum<T>(Y[4 * width + c])));  // a stored zero times ∞
    }
  }
}

// 16-bit sums live in float: 300 ones are 300, though 256 + 1 = 256 in bfloat16; 65504 · 2 - 65504 stays finite.
TYPED_TEST(Spmm, RoundsOnce) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  std::vector<I> all(300);
  for (I j = 0; j < 300; ++j) all[j] = j;
  Random random(18);
  for (const int64_t width : {1, 9, 64}) {
    Product<T, I> problem(random, {300, {all, {0, 1, 2}}}, 1, width);
    for (T& x : problem.X) x = rounded<T>(1);
    for (T& value : problem.values) value = rounded<T>(1);
    const double large[] = {61440, 61440, -61440};
    for (int64_t k = 0; k < 3; ++k) problem.values[300 + k] = rounded<T>(large[k]);
    const auto Y = problem.run();
    for (int64_t c = 0; c < width; ++c) {
      EXPECT_EQ(Sum<T>(Y[c]), Sum<T>(300));
      EXPECT_EQ(Sum<T>(Y[width + c]), Sum<T>(61440));
    }
  }
}

// y = Aᵀ x in parts, against the product with the transposed pattern: the same bits for every number of threads, and
// exactly the same numbers where the sums are exact.
TEST(SpmvTransposed, EqualsTheProductWithTheTransposedPattern) {
  Random random(19);
  for (const auto& A : {power_law_pattern<int32_t>(60000, 2000), random_pattern<int32_t>(random, 2000, 300, 0.3),
                        random_pattern<int32_t>(random, 5, 7, 0.3), random_pattern<int32_t>(random, 0, 3, 0.3)}) {
    std::vector<double> values(A.nnz());
    for (double& value : values) value = static_cast<double>(random.below(100));
    std::vector<double> x(A.rows * 3, NAN);
    for (int64_t i = 0; i < A.rows; ++i) x[3 * i] = static_cast<double>(random.below(100));
    OwnedPattern<int32_t> T(A.rows, std::vector<std::vector<int32_t>>(A.cols));
    T.indices.resize(A.nnz());
    std::vector<int32_t> perm(A.nnz());
    kernels::transpose(A.view(), T.indptr.data(), T.indices.data(), perm.data());
    std::vector<double> want(A.cols, NAN), got(A.cols, NAN), sums(3 * A.cols, NAN);
    kernels::spmm(Pool(Serial{}), Csr<double, int32_t>{T.view(), values.data(), 1, perm.data()}, x.data(), 3, 1,
                  want.data());
    const Csr<double, int32_t> matrix{A.view(), values.data(), 1, nullptr};
    for (const int64_t count : {1, 2, 5}) {
      kernels::spmv_transposed(Pool(Threads(count)), matrix, x.data(), 3, got.data(), sums.data());
      expect_same_bits(got, want);
    }
    for (double& value : values) value = random.real();  // now the order of the additions shows
    kernels::spmv_transposed(Pool(Serial{}), matrix, x.data(), 3, want.data(), sums.data());
    kernels::spmv_transposed(Pool(Threads(3)), matrix, x.data(), 3, got.data(), sums.data());
    expect_same_bits(got, want);
  }
}

// 32-bit indices into an X of more than 2^31 elements: reserved, and only three rows of it ever touched.
TEST(SpmmLarge, OffsetsAre64Bit) {
  constexpr int64_t ldx = (int64_t{1} << 30) + 7, length = 2 * ldx + 8;
  constexpr size_t bytes = length * sizeof(bfloat16);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 4 GB of addresses to be had";
  auto* X = static_cast<bfloat16*>(memory);
  for (int64_t j = 0; j < 3; ++j)
    for (int64_t c = 0; c < 8; ++c) X[j * ldx + c] = rounded<bfloat16>(static_cast<double>(10 * j + c));
  const OwnedPattern<int32_t> A(3, {{2}, {0, 2}});
  const std::vector<bfloat16> values = {bfloat16(1), bfloat16(2), bfloat16(3)};
  std::vector<bfloat16> Y(16);
  kernels::spmm(Pool(Serial{}), Csr<bfloat16, int32_t>{A.view(), values.data(), 1, nullptr}, X, ldx, 8, Y.data());
  for (int64_t c = 0; c < 8; ++c) {
    EXPECT_EQ(static_cast<float>(Y[c]), static_cast<float>(20 + c));
    EXPECT_EQ(static_cast<float>(Y[8 + c]), static_cast<float>(2 * c + 3 * (20 + c)));
  }
  munmap(memory, bytes);
}

}  // namespace
}  // namespace gossamer::test
