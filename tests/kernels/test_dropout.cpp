// SPDX-License-Identifier: BSD-3-Clause
// The numbers that dropout draws: fair, independent, and a function of seed and place, or of seed and key.
#include <gossamer/kernels/dropout.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gossamer {
namespace {

// Of entries, in no order; some beyond what their product with a number of heads can hold.
std::vector<int64_t> some_keys(int64_t n) {
  std::vector<int64_t> keys(n);
  for (int64_t k = 0; k < n; ++k) keys[k] = static_cast<int64_t>(mix_bits(static_cast<uint64_t>(k / 2)));
  return keys;
}

// What a lane draws for an entry is what its key says, wherever the entry stands and whatever stands beside it.
TEST(DropoutBits, OfEntriesWithKeysDependOnTheKeys) {
  const std::vector<int64_t> keys = some_keys(40);
  for (const int64_t heads : {1, 3, 8, 9})
    simd([&]<int bytes> {
      constexpr int lanes = bytes / sizeof(float);
      Dropout dropout(0.4, 7);
      dropout.keys = keys.data();
      std::vector<float> got(40 * heads + lanes);
      entry_factors<lanes>(dropout, 0, 40, heads, got.data());
      for (int64_t p = 0; p < 40; ++p)
        for (int64_t h = 0; h < heads; ++h) {
          const auto k = static_cast<int64_t>(static_cast<uint64_t>(keys[p]) * heads + h);
          EXPECT_EQ(got[p * heads + h], Dropout(0.4, 7).factor<float>(k));
        }
    });
}

TEST(DropoutBits, AreFairAndDependOnTheSeedAlone) {
  constexpr int64_t n = 200000;
  for (const double p : {0.1, 0.5, 0.9}) {
    const Dropout a(p, 3), b(p, 4);
    int64_t kept = 0, pairs = 0, both = 0;
    for (int64_t k = 0; k < n; ++k) {
      kept += a.keeps(k);
      pairs += a.keeps(k) && a.keeps(k + 1);
      both += a.keeps(k) && b.keeps(k);
      EXPECT_EQ(a.keeps(k), Dropout(p, 3).keeps(k));
    }
    const double q = 1 - p, sigma = std::sqrt(0.25 / n);
    EXPECT_NEAR(static_cast<double>(kept) / n, q, 5 * sigma);
    EXPECT_NEAR(static_cast<double>(pairs) / n, q * q, 5 * sigma);  // neighbours are independent
    EXPECT_NEAR(static_cast<double>(both) / n, q * q, 5 * sigma);   // so are seeds
    EXPECT_EQ(a.factor<double>(0) * q, a.keeps(0) ? 1.0 : 0.0);
  }
  for (int64_t k = 0; k < 100; ++k) EXPECT_EQ(Dropout(1, 5).factor<float>(k), 0.0f);
  EXPECT_FALSE(Dropout(0, 5).any());
}

}  // namespace
}  // namespace gossamer
