// SPDX-License-Identifier: BSD-3-Clause
// Each invariant of a pattern, broken alone, has its message, word for word: the op layer shows it to the user.
#include <gossamer/kernels/bounds.h>

#include <limits>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

template <class I>
struct Structure : testing::Test {
  // indptr and indices as they are, broken or not.
  static std::string check(int64_t cols, const std::vector<I>& indptr, const std::vector<I>& indices) {
    const PatternView<I> A{static_cast<int64_t>(indptr.size()) - 1, cols, static_cast<int64_t>(indices.size()),
                           indptr.data(), indices.data()};
    EXPECT_EQ(kernels::in_bounds(Serial{}, A), in_bounds(A));  // which leave order and uniqueness to the full check
    return check_structure(A);
  }
};
TYPED_TEST_SUITE(Structure, IndexTypes);

TYPED_TEST(Structure, ValidIsSilent) {
  EXPECT_EQ(this->check(4, {0, 2, 2, 5}, {0, 3, 0, 1, 2}), "");
  EXPECT_EQ(this->check(1, {0, 1}, {0}), "");
  Random random(1);
  EXPECT_EQ(check_structure(random_pattern<TypeParam>(random, 50, 70, 0.2).view()), "");
  EXPECT_EQ(check_structure(power_law_pattern<TypeParam>(80, 60).view()), "");
}

TYPED_TEST(Structure, EmptyIsValid) {
  EXPECT_EQ(this->check(0, {0}, {}), "");
  EXPECT_EQ(this->check(5, {0}, {}), "");
  EXPECT_EQ(this->check(0, {0, 0, 0}, {}), "");
  EXPECT_EQ(this->check(5, {0, 0, 0}, {}), "");
}

TYPED_TEST(Structure, StartsAtZero) {
  EXPECT_EQ(this->check(3, {1, 2}, {0, 1}), "indptr[0] is 1, not 0");
  EXPECT_EQ(this->check(3, {-1, 2}, {0, 1}), "indptr[0] is -1, not 0");
  EXPECT_EQ(this->check(3, {7}, {}), "indptr[0] is 7, not 0");
}

TYPED_TEST(Structure, NeverDecreases) {
  EXPECT_EQ(this->check(3, {0, 2, 1, 2}, {0, 1}), "indptr decreases from 2 to 1 at row 1");
  EXPECT_EQ(this->check(3, {0, -1}, {}), "indptr decreases from 0 to -1 at row 0");
  // Found before the indices are looked at, of which there are too few for this indptr.
  EXPECT_EQ(this->check(3, {0, 100, 0}, {}), "indptr decreases from 100 to 0 at row 1");
}

TYPED_TEST(Structure, EndsAtTheNumberOfIndices) {
  EXPECT_EQ(this->check(3, {0, 1, 3}, {0, 1}), "indptr ends at 3 but there are 2 indices");
  EXPECT_EQ(this->check(3, {0, 1, 1}, {0, 1}), "indptr ends at 1 but there are 2 indices");
  EXPECT_EQ(this->check(3, {0}, {0}), "indptr ends at 0 but there are 1 indices");
}

TYPED_TEST(Structure, ColumnsAreInRange) {
  EXPECT_EQ(this->check(3, {0, 1, 3}, {0, 1, 3}), "column 3 in row 1 is outside the 3 columns");
  EXPECT_EQ(this->check(3, {0, 1, 3}, {-1, 1, 2}), "column -1 in row 0 is outside the 3 columns");
  EXPECT_EQ(this->check(0, {0, 1}, {0}), "column 0 in row 0 is outside the 0 columns");
}

// Enough entries for several threads, one of them out of range, the extremes of the type among them.
TYPED_TEST(Structure, OneColumnOutOfRangeIsFoundByAnyThread) {
  constexpr int64_t n = 600'000;
  const std::vector<TypeParam> indptr = {0, n};
  std::vector<TypeParam> indices(n, TypeParam{6});
  const PatternView<TypeParam> A{1, 7, n, indptr.data(), indices.data()};
  const Threads threads(4);
  EXPECT_TRUE(kernels::in_bounds(threads, A));
  EXPECT_EQ(threads.parts, 4);
  for (const TypeParam bad :
       {TypeParam{-1}, TypeParam{7}, std::numeric_limits<TypeParam>::min(), std::numeric_limits<TypeParam>::max()})
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      indices[at] = bad;
      EXPECT_FALSE(kernels::in_bounds(threads, A));
      indices[at] = 0;
    }
}

TYPED_TEST(Structure, ColumnsAreDistinct) {
  EXPECT_EQ(this->check(5, {0, 1, 4}, {1, 1, 2, 2}), "column 2 in row 1 appears twice");
}

TYPED_TEST(Structure, ColumnsAscend) {
  EXPECT_EQ(this->check(5, {0, 0, 3}, {1, 4, 2}), "columns in row 1 are not sorted: 2 follows 4");
}

TYPED_TEST(Structure, TheFirstFaultIsNamed) {
  EXPECT_EQ(this->check(5, {0, 2, 4}, {3, 1, 9, 9}), "columns in row 0 are not sorted: 1 follows 3");
  EXPECT_EQ(this->check(5, {0, 3}, {2, 9, 1}), "column 9 in row 0 is outside the 5 columns");
}

TEST(StructureWide, MessagesHoldLargeNumbers) {
  const std::vector<int64_t> indptr = {0, 1}, indices = {int64_t{1} << 40};
  EXPECT_EQ(check_structure(PatternView<int64_t>{1, int64_t{1} << 35, 1, indptr.data(), indices.data()}),
            "column 1099511627776 in row 0 is outside the 34359738368 columns");
  EXPECT_EQ(check_structure(PatternView<int64_t>{1, int64_t{1} << 41, 1, indptr.data(), indices.data()}), "");
}

}  // namespace
}  // namespace gossamer::test
