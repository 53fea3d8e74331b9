// SPDX-License-Identifier: BSD-3-Clause
// Triplets to CSR against a std::map from each place to the triplets that go there, in the order they came.
#include <gossamer/kernels/coo.h>

#include <algorithm>
#include <map>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

struct Triplets {
  int64_t m = 0, n_cols = 0;
  std::vector<int64_t> rows, cols;

  // Every (row, col) to the triplets k at it, ascending.
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> places() const {
    std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> result;
    for (size_t k = 0; k < rows.size(); ++k) result[{rows[k], cols[k]}].push_back(static_cast<int64_t>(k));
    return result;
  }
};

template <class I>
void expect_sorted_and_compressed(const Triplets& from) {
  SCOPED_TRACE(testing::Message() << from.m << " x " << from.n_cols << ", triplets " << from.rows.size());
  const auto n = static_cast<int64_t>(from.rows.size());
  std::vector<int64_t> starts(from.m + 1, -1), order(n, -1), slot(n, -1);
  const int64_t distinct =
      kernels::coo_sort(Threads(3), from.m, n, from.rows.data(), from.cols.data(), starts.data(), order.data());
  ASSERT_GE(distinct, 0);
  std::vector<I> indptr(from.m + 1, I{-1}), indices(distinct, I{-1});
  kernels::coo_compress(from.m, from.cols.data(), starts.data(), order.data(), indptr.data(), indices.data(),
                        slot.data());

  std::vector<int64_t> want_order, want_slot(n), want_starts(from.m + 1);
  std::vector<I> want_indptr(from.m + 1), want_indices;
  for (const auto& [place, triplets] : from.places()) {
    for (const int64_t k : triplets) {
      want_order.push_back(k);
      want_slot[k] = static_cast<int64_t>(want_indices.size());
    }
    want_indices.push_back(static_cast<I>(place.second));
    for (int64_t i = place.first; i < from.m; ++i) {
      ++want_indptr[i + 1];
      want_starts[i + 1] += static_cast<int64_t>(triplets.size());
    }
  }
  EXPECT_EQ(distinct, static_cast<int64_t>(want_indices.size()));
  EXPECT_EQ(starts, want_starts);
  EXPECT_EQ(order, want_order);  // also that equal places keep the order in which they came
  EXPECT_EQ(indptr, want_indptr);
  EXPECT_EQ(indices, want_indices);
  EXPECT_EQ(slot, want_slot);
  EXPECT_EQ(check_structure(PatternView<I>{from.m, from.n_cols, distinct, indptr.data(), indices.data()}), "");
}

Triplets random_triplets(Random& random, int64_t m, int64_t n_cols, int64_t n) {
  Triplets result{m, n_cols, std::vector<int64_t>(n), std::vector<int64_t>(n)};
  for (int64_t k = 0; k < n; ++k) {
    result.rows[k] = random.below(m);
    result.cols[k] = random.below(n_cols);
  }
  return result;
}

template <class I>
struct Coo : testing::Test {};
TYPED_TEST_SUITE(Coo, IndexTypes);

TYPED_TEST(Coo, RandomTripletsWithDuplicates) {
  Random random(40);
  for (const int64_t m : {1, 2, 10, 100})
    for (const int64_t n_cols : {1, 3, 40})
      for (const int64_t n : {1, 2, 20, 1000})
        expect_sorted_and_compressed<TypeParam>(random_triplets(random, m, n_cols, n));
}

TYPED_TEST(Coo, Empty) {
  expect_sorted_and_compressed<TypeParam>({0, 0, {}, {}});
  expect_sorted_and_compressed<TypeParam>({0, 5, {}, {}});
  expect_sorted_and_compressed<TypeParam>({5, 0, {}, {}});
  expect_sorted_and_compressed<TypeParam>({4, 5, {}, {}});
}

TYPED_TEST(Coo, SortedReversedAndAllAtOnePlace) {
  expect_sorted_and_compressed<TypeParam>({3, 4, {0, 0, 2, 2, 2}, {1, 3, 0, 1, 2}});
  expect_sorted_and_compressed<TypeParam>({3, 4, {2, 2, 2, 0, 0}, {2, 1, 0, 3, 1}});
  expect_sorted_and_compressed<TypeParam>({3, 4, {1, 1, 1, 1}, {2, 2, 2, 2}});
  expect_sorted_and_compressed<TypeParam>({4, 4, {3, 0, 3, 0}, {0, 0, 0, 0}});  // one column at the seam of two rows
  expect_sorted_and_compressed<TypeParam>({2, 2, {0, 1, 0, 1, 0}, {1, 1, 1, 0, 0}});
}

// Few columns in one long row: an unstable sort would show.
TYPED_TEST(Coo, StableInALongRow) {
  Random random(41);
  expect_sorted_and_compressed<TypeParam>(random_triplets(random, 1, 5, 5000));
}

// As a sampler draws them: by rows, each row in no order; and enough of them for several threads.
TYPED_TEST(Coo, TripletsThatComeByRows) {
  Random random(42);
  Triplets from = random_triplets(random, 2000, 50, 20000);
  expect_sorted_and_compressed<TypeParam>(from);
  std::sort(from.rows.begin(), from.rows.end());
  expect_sorted_and_compressed<TypeParam>(from);
}

// Columns that do not fit 32 bits beside the place they came from.
TEST(CooSort, WideColumns) {
  const std::vector<int64_t> rows = {0, 0, 0, 0}, cols = {int64_t{1} << 40, 3, int64_t{1} << 40, 2};
  std::vector<int64_t> starts(2), order(4);
  EXPECT_EQ(kernels::coo_sort(Serial{}, 1, 4, rows.data(), cols.data(), starts.data(), order.data()), 3);
  EXPECT_EQ(order, (std::vector<int64_t>{3, 1, 0, 2}));
}

// What slot is for: the values of duplicates are added up in one pass.
TYPED_TEST(Coo, SlotsAddUp) {
  const Triplets from{2, 3, {1, 0, 1, 0}, {2, 0, 2, 1}};
  const double values[] = {1, 10, 100, 1000};
  std::vector<int64_t> starts(3), order(4), slot(4);
  ASSERT_EQ(kernels::coo_sort(Serial{}, 2, 4, from.rows.data(), from.cols.data(), starts.data(), order.data()), 3);
  std::vector<TypeParam> indptr(3), indices(3);
  kernels::coo_compress(2, from.cols.data(), starts.data(), order.data(), indptr.data(), indices.data(), slot.data());
  std::vector<double> sums(3);
  for (int k = 0; k < 4; ++k) sums[slot[k]] += values[k];
  EXPECT_EQ(sums, std::vector<double>({10, 1000, 101}));
}

}  // namespace
}  // namespace gossamer::test
