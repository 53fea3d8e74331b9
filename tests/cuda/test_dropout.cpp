// SPDX-License-Identifier: BSD-3-Clause
// The factors of a dropout: those of the host for the same seed, whether it came by value or lies in the device's
// memory.
#include "dropout.cuh"

#include <gtest/gtest.h>

#include <vector>

#include "matrix.h"

namespace gossamer::test {
namespace {

template <class S>
std::vector<S> drawn(const Dropout& dropout, int64_t n, int64_t heads = 1) {
  std::vector<S> factors(n * heads, S{-1});
  kernels::dropout_mask(Cuda{}, dropout, n, heads, factors.data());
  return factors;
}

TEST(Dropout, DrawsWhatTheHostDraws) {
  const int64_t seed = 12345;
  for (const int64_t n : {0, 1, 31, 32, 33, under_tsan ? 100 : 1000})
    for (const double p : {0.0, 0.3, 1.0}) {
      const Dropout on_host(p, static_cast<uint64_t>(seed));
      std::vector<double> wanted;
      for (int64_t k = 0; k < n; ++k) wanted.push_back(on_host.factor<double>(k));
      EXPECT_EQ(drawn<double>(on_host, n), wanted);
      EXPECT_EQ(drawn<double>(Dropout(p, &seed), n), wanted);
      EXPECT_EQ(drawn<float>(Dropout(p, &seed), n), std::vector<float>(wanted.begin(), wanted.end()));
    }
}

TEST(Dropout, AnotherSeedInTheSameMemoryDrawsAnotherMask) {
  int64_t seed = 1;
  const Dropout dropout(0.5, &seed);
  const auto before = drawn<float>(dropout, 100);
  seed = 2;
  EXPECT_NE(drawn<float>(dropout, 100), before);
}

TEST(Dropout, EntriesWithKeysDrawByThem) {
  const std::vector<int64_t> keys = {7, -3, 7, INT64_MAX, 0};
  Dropout dropout(0.4, uint64_t{5});
  dropout.keys = keys.data();
  std::vector<double> wanted;
  for (const int64_t key : keys)
    for (uint64_t h = 0; h < 3; ++h)
      wanted.push_back(Dropout(0.4, uint64_t{5}).factor<double>(static_cast<int64_t>(uint64_t(key) * 3 + h)));
  EXPECT_EQ(drawn<double>(dropout, 5, 3), wanted);
}

}  // namespace
}  // namespace gossamer::test
