// SPDX-License-Identifier: BSD-3-Clause
// Rows follow each other on grids, bands and meshes, and not in graphs.
#include <gossamer/kernels/locality.h>

#include "dense.h"

namespace gossamer::test {
namespace {

template <class I, class Columns>
bool follow(int64_t rows, int64_t columns, const Columns& columns_of) {
  std::vector<std::vector<I>> all(rows);
  for (int64_t i = 0; i < rows; ++i)
    for (const int64_t j : columns_of(i))
      if (j >= 0 && j < columns) all[i].push_back(static_cast<I>(j));
  return kernels::rows_follow(OwnedPattern<I>(columns, all).view());
}

using Columns = std::vector<int64_t>;

template <class I>
struct Locality : testing::Test {};
using Widths = testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(Locality, Widths);

TYPED_TEST(Locality, OfBandsGridsAndBlocks) {
  using I = TypeParam;
  EXPECT_TRUE(follow<I>(500, 500, [](int64_t i) { return Columns{i - 1, i, i + 1}; }));
  EXPECT_TRUE(follow<I>(900, 900, [](int64_t i) { return Columns{i - 30, i - 1, i, i + 1, i + 30}; }));
  EXPECT_TRUE(follow<I>(600, 600, [](int64_t i) {  // three unknowns a node, as in elasticity
    const int64_t node = i / 3 * 3;
    return Columns{node - 30, node - 29, node - 28, node, node + 1, node + 2, node + 30, node + 31, node + 32};
  }));
  EXPECT_TRUE(follow<I>(400, 400, [](int64_t) { return Columns{0, 1, 2}; }));  // the first columns, too
}

TYPED_TEST(Locality, NotOfGraphs) {
  using I = TypeParam;
  const auto anywhere = [](int64_t i) {
    Columns columns;
    for (int64_t k = 1; k <= 8; ++k) columns.push_back(i * i * 7919 * k % 100003 % 5000);
    std::sort(columns.begin(), columns.end());
    return columns;
  };
  EXPECT_FALSE(follow<I>(5000, 5000, anywhere));
  EXPECT_FALSE(follow<I>(500, 500, [](int64_t i) { return Columns{499 - i}; }));  // backwards
}

TYPED_TEST(Locality, OfFewRowsAndOfNone) {
  using I = TypeParam;
  const auto nothing = [](int64_t) { return Columns{}; };
  for (const int64_t rows : {0, 1, 2, 40}) EXPECT_FALSE(follow<I>(rows, 9, nothing));
  EXPECT_FALSE(follow<I>(1, 9, [](int64_t) { return Columns{0, 4, 8}; }));
  EXPECT_TRUE(follow<I>(2, 9, [](int64_t) { return Columns{0, 4, 8}; }));
}

}  // namespace
}  // namespace gossamer::test
