// SPDX-License-Identifier: BSD-3-Clause
// Softmax and maximum of each row, against the definition in long double.
#include <gossamer/kernels/softmax.h>

#include <gossamer/kernels/argmax.h>
#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

using I = int32_t;

template <class T>
Csr<T, I> matrix(const OwnedPattern<I>& pattern, const std::vector<T>& values, int64_t heads) {
  return {pattern.view(), values.data(), heads, nullptr};
}

template <class T>
void expect_softmax(const Csr<T, I>& A, long double tolerance) {
  std::vector<T> P(A.nnz * A.heads), parallel(A.nnz * A.heads);
  kernels::row_softmax(Pool(Serial{}), A, P.data());
  kernels::row_softmax(Pool(Threads(3)), A, parallel.data());
  expect_same_bits(parallel, P);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t h = 0; h < A.heads; ++h) {
      const auto value = [&](int64_t p) { return static_cast<long double>(Sum<T>(A.values[p * A.heads + h])); };
      long double top = -INFINITY, sum = 0;
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) top = std::max(top, value(p));
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) sum += std::exp(value(p) - top);
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
        ASSERT_NEAR(static_cast<double>(Sum<T>(P[p * A.heads + h])),
                    static_cast<double>(std::exp(value(p) - top) / sum), static_cast<double>(tolerance));
    }
}

TEST(Softmax, EqualsItsDefinition) {
  Random random(1);
  const auto A = random_pattern<I>(random, 40, 60, 0.3);
  for (const int64_t heads : {1, 3, 8, 11}) {
    expect_softmax(matrix(A, random.values<double>(A.nnz() * heads), heads), 1e-15L);
    expect_softmax(matrix(A, random.values<float>(A.nnz() * heads), heads), 1e-6L);
    expect_softmax(matrix(A, random.values<bfloat16>(A.nnz() * heads), heads), 4e-3L);
  }
}

TEST(Softmax, LargeNumbersDoNotOverflow) {
  const OwnedPattern<I> A(3, {{0, 1, 2}, {}, {1}});
  const std::vector<double> values{1e308, 1e308, -1e308, -1e308};
  std::vector<double> P(4);
  kernels::row_softmax(Pool(Serial{}), matrix(A, values, 1), P.data());
  EXPECT_EQ(P, (std::vector<double>{0.5, 0.5, 0, 1}));
}

template <class T>
int64_t largest(const Csr<T, I>& A, int64_t i, int64_t h, bool stored) {
  const bool full = stored || A.indptr[i + 1] - A.indptr[i] == A.cols;
  int64_t best = A.nnz;
  double top = full ? -INFINITY : 0;
  for (int64_t p = A.indptr[i + 1]; p-- > A.indptr[i];) {
    const double v = Sum<T>(A.values[p * A.heads + h]);
    if (v >= top) best = p, top = v;
  }
  return best;
}

TEST(Argmax, CountsWhatIsNotStoredAsZeroUnlessToldOtherwise) {
  Random random(2);
  for (const int64_t cols : {1, 5, 60}) {
    const auto pattern = random_pattern<I>(random, 50, cols, 0.4);
    for (const int64_t heads : {1, 4}) {
      auto values = random.values<float>(pattern.nnz() * heads);
      for (float& v : values) v = std::floor(2 * v) - 1;  // -3, -2, -1, 0: ties, and rows below zero
      const auto A = matrix(pattern, values, heads);
      for (const bool stored : {false, true}) {
        std::vector<int64_t> at(50 * heads), parallel(50 * heads);
        kernels::row_argmax(Pool(Serial{}), A, stored, at.data());
        kernels::row_argmax(Pool(Threads(3)), A, stored, parallel.data());
        EXPECT_EQ(at, parallel);
        for (int64_t i = 0; i < 50; ++i)
          for (int64_t h = 0; h < heads; ++h) ASSERT_EQ(at[i * heads + h], largest(A, i, h, stored)) << i;
      }
    }
  }
}

TEST(Argmax, NanIsLargest) {
  const OwnedPattern<I> pattern(3, {{0, 1, 2}, {0, 2}});
  const std::vector<float> values{1, NAN, INFINITY, -1, NAN};
  std::vector<int64_t> at(2);
  kernels::row_argmax(Pool(Serial{}), matrix(pattern, values, 1), false, at.data());
  EXPECT_EQ(at, (std::vector<int64_t>{1, 4}));
}

}  // namespace
}  // namespace gossamer::test
