// SPDX-License-Identifier: BSD-3-Clause
// Exact dots: known sums, the tuned form against the definition digit by digit, and the same digits in every order.
// tests/distributed compares with Python's fractions, which know nothing of this.
#include <gossamer/kernels/dot_exact.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "executors.h"

using namespace gossamer;
using kernels::ExactSum;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double t : numbers) sum.add(t);
  return sum.value();
}

std::vector<int64_t> digits(const std::vector<ExactSum>& sums) {
  std::vector<int64_t> all;
  for (ExactSum sum : sums) {
    sum.carry();
    all.insert(all.end(), sum.data(), sum.data() + ExactSum::size);
  }
  return all;
}

// Numbers of which some exponents are up to `spread` apart, with zeros of both signs among them.
template <class T>
std::vector<T> numbers(int64_t count, int spread, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> exponent(-spread, spread), rare(0, 49);
  std::vector<T> result(count);
  for (T& x : result) {
    x = static_cast<T>(std::ldexp(normal(generator), exponent(generator)));
    if (const int dice = rare(generator); dice < 2) x = static_cast<T>(dice ? -0.0 : 0.0);
  }
  return result;
}

template <class E, class T>
std::vector<int64_t> tuned(const E& exec, int64_t n, int64_t k, const std::vector<T>& u, const std::vector<T>& v) {
  std::vector<ExactSum> sums(k);
  kernels::dot_exact(exec, n, k, u.data(), v.data(), sums.data());
  return digits(sums);
}

template <class T>
std::vector<int64_t> plain(int64_t n, int64_t k, const std::vector<T>& u, const std::vector<T>& v) {
  std::vector<ExactSum> sums(k);
  kernels::plain::dot_exact(n, k, u.data(), v.data(), sums.data());
  return digits(sums);
}

template <class T>
void expect_the_definition(int64_t n, int64_t k, int spread) {
  const auto u = numbers<T>(n * k, spread, 1), v = numbers<T>(n * k, spread, 2);
  const auto wanted = plain(n, k, u, v);
  ASSERT_EQ(tuned(Pool(Serial{}), n, k, u, v), wanted) << n << " x " << k << ", spread " << spread;
  ASSERT_EQ(tuned(Serial{}, n, k, u, v), wanted) << n << " x " << k << ", spread " << spread;
}

}  // namespace

TEST(ExactSum, KnownSums) {
  EXPECT_EQ(sum_of({}), 0.0);
  EXPECT_EQ(sum_of({1e300, 1.0, -1e300}), 1.0);
  EXPECT_EQ(sum_of({0x1p1023, 0x1p-1074, -0x1p1023}), 0x1p-1074);
  EXPECT_EQ(sum_of({-0x1p1023, -0x1p-1074, 0x1p1023}), -0x1p-1074);
  EXPECT_EQ(sum_of({0x1p-1022, -0x1p-1074}), 0x1p-1022 - 0x1p-1074);
  EXPECT_EQ(sum_of({0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023}), 0x1.fffffffffffffp1023);
  EXPECT_EQ(sum_of({0x1p1023, 0x1p1023}), infinity);
  EXPECT_EQ(sum_of({-0x1p1023, -0x1p1023}), -infinity);
}

TEST(ExactSum, RoundsToTheNearestTiesToEven) {
  EXPECT_EQ(sum_of({0x1p53, 1.0}), 0x1p53);                     // a tie, down to even
  EXPECT_EQ(sum_of({0x1p53, 3.0}), 0x1p53 + 4);                 // a tie, up to even
  EXPECT_EQ(sum_of({0x1p53, 1.0, 0x1p-1074}), 0x1p53 + 2);      // a little more than a tie
  EXPECT_EQ(sum_of({0x1p53, 1.0, -0x1p-1074}), 0x1p53);         // a little less
  EXPECT_EQ(sum_of({-0x1p53, -1.0, -0x1p-1074}), -0x1p53 - 2);  // and of the other sign
  EXPECT_EQ(sum_of({0x1.fffffffffffffp1023, 0x1p969}), 0x1.fffffffffffffp1023);
  EXPECT_EQ(sum_of({0x1.fffffffffffffp1023, 0x1p970}), infinity);  // as the sum of the two itself
}

TEST(ExactSum, NanAndInfinitiesAsInALoop) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(sum_of({1.0, infinity, infinity}), infinity);
  EXPECT_EQ(sum_of({-infinity, 1e308}), -infinity);
  EXPECT_TRUE(std::isnan(sum_of({infinity, -infinity})));
  EXPECT_TRUE(std::isnan(sum_of({1.0, nan})));
}

TEST(DotExact, EqualsTheDefinition) {
  for (const int64_t n : {0, 1, 2, 7, 8, 9, 2047, 2048, 2049, 9001})
    for (const int64_t k : {1, 2, 3, 4, 8, 12, 16}) {
      expect_the_definition<double>(n, k, 3);
      expect_the_definition<float>(n, k, 3);
    }
  expect_the_definition<double>(3, 5000, 3);  // rows that are longer than a piece
}

// Two steps of 50 bits are not enough for these; the first ones have subnormal products and such that are infinite.
TEST(DotExact, EqualsTheDefinitionForWideRanges) {
  for (const int spread : {500, 300, 50, 30})
    for (const int64_t k : {1, 3, 16}) expect_the_definition<double>(5000, k, spread);
  for (const int spread : {60, 30}) expect_the_definition<float>(5000, 1, spread);
}

// A piece much larger, and one much smaller than the one before, of which its size is believed.
TEST(DotExact, PiecesOfAllSizes) {
  const int64_t n = 12 * kernels::exact_piece;
  auto u = numbers<double>(n, 2, 1), v = numbers<double>(n, 2, 2);
  const int sizes[] = {0, 4, 100, -100, 0, 900, -1000, -1060, 1000, 0, 60, -400};
  for (int64_t p = 0; p < n; ++p) u[p] = std::ldexp(u[p], sizes[p / kernels::exact_piece]);
  EXPECT_EQ(tuned(Serial{}, n, 1, u, v), plain(n, 1, u, v));
}

TEST(DotExact, NanAndInfinitiesAnywhere) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const int64_t at : {0, 1500, 2047, 4093, 4099}) {
    auto u = numbers<double>(4100, 2, 1), v = numbers<double>(4100, 2, 2);
    for (const double bad : {nan, infinity, -infinity, 1e308}) {
      u[at] = bad, v[at] = 1e5;
      EXPECT_EQ(tuned(Serial{}, 4100, 1, u, v), plain(4100, 1, u, v));
    }
  }
}

TEST(DotExact, TheSameDigitsInEveryOrderAndForEveryNumberOfThreads) {
  const int64_t n = 150001;
  for (const int spread : {3, 40}) {
    const auto u = numbers<double>(n, spread, 3), v = numbers<double>(n, spread, 4);
    const auto once = tuned(Serial{}, n, 1, u, v);
    for (int64_t count = 2; count <= 8; ++count) {
      const test::Threads threads(count);
      EXPECT_EQ(tuned(threads, n, 1, u, v), once);
      EXPECT_EQ(threads.parts, count);
      EXPECT_EQ(tuned(test::Backwards(count), n, 1, u, v), once);
    }
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (unsigned seed = 0; seed < 3; ++seed) {
      std::shuffle(order.begin(), order.end(), std::mt19937(seed));
      std::vector<double> a, b;
      for (const int64_t p : order) a.push_back(u[p]), b.push_back(v[p]);
      EXPECT_EQ(tuned(Serial{}, n, 1, a, b), once);
    }
    // In parts, as processes have them, some of them empty, added digit by digit.
    for (const int64_t cut : {int64_t{0}, int64_t{1}, int64_t{77777}}) {
      ExactSum parts[2];
      kernels::dot_exact(Serial{}, cut, 1, u.data(), v.data(), &parts[0]);
      kernels::dot_exact(Serial{}, n - cut, 1, u.data() + cut, v.data() + cut, &parts[1]);
      parts[0].add(parts[1]);
      EXPECT_EQ(digits({parts[0]}), once);
    }
  }
}
