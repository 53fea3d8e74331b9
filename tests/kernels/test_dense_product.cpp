// SPDX-License-Identifier: BSD-3-Clause
// Dense blocks, of sizes around every strip, tile and depth, against the plain loops.
#include <gossamer/kernels/dense_product.h>
#include <gossamer/kernels/dense_triangle.h>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

template <class T>
class DenseProduct : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(DenseProduct, Reals);

template <class T>
constexpr T loose = std::is_same_v<T, float> ? T(1e-4) : T(1e-12);

template <class T>
Block<T> block(std::vector<T>& data, int64_t rows, int64_t columns, bool turned, int64_t ld) {
  return turned ? by_columns(data.data(), columns, rows, ld).transposed() : by_columns(data.data(), rows, columns, ld);
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& want, int64_t terms) {
  for (size_t k = 0; k < got.size(); ++k) {
    if (std::isnan(want[k])) {
      ASSERT_TRUE(std::isnan(got[k])) << k;  // between the columns
      continue;
    }
    ASSERT_NEAR(got[k], want[k], loose<T> * static_cast<T>(terms + 1)) << k;
  }
}

TYPED_TEST(DenseProduct, EqualsThePlainLoops) {
  using T = TypeParam;
  Random random(1);
  for (const int64_t m : {0, 1, 7, 17, 40, 193, 260})
    for (const int64_t n : {0, 1, 6, 9, 33, 200})
      for (const int64_t k : {0, 1, 4, 5, 31, 257})
        for (const int turned : {0, 1, 2, 3, 4}) {
          const int64_t lda = (turned & 1 ? k : m) + 2, ldb = (turned & 2 ? k : n) + 1, ldc = (turned & 4 ? n : m) + 3;
          auto a = random.strided<T>(turned & 1 ? m : k, turned & 1 ? k : m, lda);
          auto b = random.strided<T>(turned & 2 ? n : k, turned & 2 ? k : n, ldb);
          auto c = random.strided<T>(turned & 4 ? m : n, turned & 4 ? n : m, ldc), want = c;
          const Block<const T> A = block(a, m, k, turned & 1, lda), B = block(b, n, k, turned & 2, ldb);
          kernels::plain::subtract_product(block(want, m, n, turned & 4, ldc), A, B);
          kernels::subtract_product(Serial(), block(c, m, n, turned & 4, ldc), A, B);
          expect_near(c, want, k);
        }
}

TYPED_TEST(DenseProduct, TheLowerTriangleIsThatOfTheWhole) {
  using T = TypeParam;
  Random random(2);
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{30, 30}, {400, 400}, {500, 250}, {5, 3}})
    for (const int64_t k : {2, 40}) {
      const auto a = random.values<T>(m * k);
      auto c = random.values<T>(m * n), want = c;
      const Block<const T> A = by_columns(a.data(), m, k, m);
      kernels::plain::subtract_product(by_columns(want.data(), m, n, m), A, A.part(0, 0, n, k));
      const Threads threads(3);
      kernels::subtract_product(threads, by_columns(c.data(), m, n, m), A, A.part(0, 0, n, k), /*lower=*/true);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = j; i < m; ++i) ASSERT_NEAR(c[j * m + i], want[j * m + i], loose<T> * 50) << i << ", " << j;
    }
}

// A triangle whose inverse is of its own size.
template <class T>
std::vector<T> triangle(Random& random, int64_t n) {
  std::vector<T> L = random.values<T>(n * n);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i)
      L[j * n + i] = i == j ? T(2) + L[j * n + i] / 2 : i > j ? L[j * n + i] / T(n) : T(NAN);
  return L;
}

TYPED_TEST(DenseProduct, TrianglesAreSolvedAsByThePlainLoops) {
  using T = TypeParam;
  Random random(3);
  for (const int64_t n : {1, 2, 15, 16, 17, 50, 150})
    for (const int64_t m : {0, 1, 3, 20, 70})
      for (const bool transposed : {false, true}) {
        const auto l = triangle<T>(random, n);
        auto x = random.strided<T>(n, m, m + 1), want = x;
        const Block<const T> L = by_columns(l.data(), n, n, n);
        kernels::plain::solve_right(by_columns(want.data(), m, n, m + 1), L, transposed);
        kernels::solve_right(Serial(), by_columns(x.data(), m, n, m + 1), L, transposed);
        expect_near(x, want, 10);
      }
}

TYPED_TEST(DenseProduct, TheFactorTimesItsTransposeIsTheTrapezoid) {
  using T = TypeParam;
  Random random(4);
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {5, 5}, {40, 16}, {90, 61}, {130, 130}}) {
    auto a = random.values<T>(m * n);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i <= j; ++i) a[j * m + i] = i == j ? T(n + 1) : T(NAN);
    auto l = a;
    ASSERT_EQ(kernels::cholesky(Serial(), by_columns(l.data(), m, n, m)), -1);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j; i < m; ++i) {
        long double sum = 0;
        for (int64_t k = 0; k <= j; ++k) sum += static_cast<long double>(l[k * m + i]) * l[k * m + j];
        ASSERT_NEAR(static_cast<double>(sum), a[j * m + i], loose<T> * static_cast<T>(n)) << i << ", " << j;
      }
    auto bad = a;
    const int64_t at = n * 2 / 3;
    bad[at * m + at] = -1;
    EXPECT_EQ(kernels::cholesky(Serial(), by_columns(bad.data(), m, n, m)), at);
  }
}

}  // namespace
}  // namespace gossamer::test
