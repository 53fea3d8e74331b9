// SPDX-License-Identifier: BSD-3-Clause
// Random graphs without torch: every pair at most once where promised, nothing outside, and the right numbers of them.
#include <gossamer/kernels/generate.h>
#include <gtest/gtest.h>

#include <set>

using namespace gossamer;

TEST(Generate, NumbersOfASeed) {
  std::mt19937_64 standard(5489);
  for (int k = 0; k < 9999; ++k) standard();
  EXPECT_EQ(standard(), 9981545732273789042ULL);  // as the C++ standard says
  Random random(0);
  double sum = 0, squares = 0;
  for (int k = 0; k < 100000; ++k) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.03);
}

TEST(Generate, ChosenOnesAreIncreasingAndInside) {
  for (const double p : {0.0, 1e-18, 0.001, 0.5, 0.999999, 1.0}) {
    Random random(1);
    int64_t last = -1, taken = 0;
    for_each_chosen(random, p, 10000, [&](int64_t k) {
      ASSERT_GT(k, last);
      ASSERT_LT(k, 10000);
      last = k;
      ++taken;
    });
    EXPECT_NEAR(static_cast<double>(taken), 1e4 * p, 6 * std::sqrt(1e4 * p * (1 - p)) + 1e-9) << p;
  }
}

TEST(Generate, BlocksArePairsOfNodes) {
  const std::vector<int64_t> sizes = {5, 1, 7};
  Random random(2);
  std::set<std::pair<int64_t, int64_t>> pairs;
  block_model(random, sizes, 1, 1, [&](int64_t i, int64_t j) {
    EXPECT_LT(j, i);
    EXPECT_TRUE(pairs.emplace(i, j).second);
  });
  EXPECT_EQ(pairs.size(), 13U * 12 / 2);  // all of them, once
  block_model(random, sizes, 0, 0, [&](int64_t, int64_t) { FAIL(); });
}

TEST(Generate, PowerLawStaysInside) {
  for (const int64_t nodes : {1, 2, 10, 1000}) {
    Random random(3);
    power_law(random, nodes, 5000, 2.1, std::min<int64_t>(nodes, 3), 0.5,
              [&](int64_t i, int64_t j) { ASSERT_TRUE(i >= 0 && i < nodes && j >= 0 && j < nodes && i != j); });
  }
}
