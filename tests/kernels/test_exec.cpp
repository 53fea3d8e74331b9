// SPDX-License-Identifier: BSD-3-Clause
// Row ranges: every row in exactly one of them, none with much more than its share of the work, one when it is small.
#include <atomic>
#include <mutex>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

using Range = std::pair<int64_t, int64_t>;

// Ranges in ascending order; the empty ones are left out.
template <class E, class I>
std::vector<Range> ranges(const E& exec, const PatternView<I>& A, int64_t cost) {
  std::vector<Range> result;
  std::mutex mutex;
  for_each_row_range(exec, A, cost, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    EXPECT_LE(begin, end);
    if (begin < end) result.emplace_back(begin, end);
  });
  std::sort(result.begin(), result.end());
  return result;
}

void expect_partition(const std::vector<Range>& parts, int64_t rows) {
  int64_t next = 0;
  for (const auto& [begin, end] : parts) {
    EXPECT_EQ(begin, next);
    next = end;
  }
  EXPECT_EQ(next, rows);
}

template <class I>
int64_t work_of(const PatternView<I>& A, const Range& range) {
  return A.indptr[range.second] - A.indptr[range.first] + range.second - range.first;
}

// No range exceeds its share by more than the longest row, which cannot be split.
template <class I>
void expect_balanced(const std::vector<Range>& parts, const PatternView<I>& A, int64_t threads) {
  int64_t longest = 0;
  for (int64_t i = 0; i < A.rows; ++i) longest = std::max(longest, work_of(A, {i, i + 1}));
  const int64_t share = (A.nnz + A.rows + threads - 1) / threads;
  for (const Range& range : parts)
    EXPECT_LE(work_of(A, range), share + longest) << "rows " << range.first << " to " << range.second;
}

template <class I>
struct RowRanges : testing::Test {};
TYPED_TEST_SUITE(RowRanges, IndexTypes);

TYPED_TEST(RowRanges, RowAtIsTheFirstRowWithTheWorkBeforeIt) {
  Random random(2);
  const auto owned = random_pattern<TypeParam>(random, 41, 30, 0.3);
  const auto A = owned.view();
  for (int64_t work = -1; work <= A.nnz + A.rows + 1; ++work) {
    int64_t want = 0;
    while (want < A.rows && work_of(A, {0, want}) < work) ++want;
    EXPECT_EQ(row_at(A, work), want) << "work " << work;
  }
}

TYPED_TEST(RowRanges, PartitionTheRows) {
  Random random(3);
  for (const int64_t rows : {1, 2, 7, 64, 333})
    for (const int64_t threads : {1, 2, 3, 7, 64, 1000}) {
      const auto A = random_pattern<TypeParam>(random, rows, 20, 0.2);
      expect_partition(ranges(Backwards(threads), A.view(), 100000), rows);
    }
}

TYPED_TEST(RowRanges, BalancedOnAPowerLaw) {
  const auto owned = power_law_pattern<TypeParam>(5000, 3000);
  const auto A = owned.view();
  for (const int64_t threads : {2, 3, 7, 16}) {
    const Backwards exec(threads);
    const auto parts = ranges(exec, A, 64);
    EXPECT_EQ(exec.parts, threads);
    expect_partition(parts, A.rows);
    expect_balanced(parts, A, threads);
    EXPECT_LT(parts.front().second, A.rows / threads / 2);  // the heavy rows come first, so the first range is short
  }
}

TYPED_TEST(RowRanges, EmptyRowsAreShared) {
  const OwnedPattern<TypeParam> owned(5, std::vector<std::vector<TypeParam>>(100000));
  const auto parts = ranges(Backwards(4), owned.view(), 8);
  ASSERT_EQ(parts.size(), 4u);
  for (const Range& range : parts) EXPECT_EQ(range.second - range.first, 25000);
}

// Few rows of a very wide product: the work of each is still worth a thread.
TYPED_TEST(RowRanges, FewCostlyRowsAreShared) {
  for (const int64_t rows : {3, 10, 50, 100}) {
    const OwnedPattern<TypeParam> owned(1, std::vector<std::vector<TypeParam>>(rows, {0}));
    const auto A = owned.view();
    const auto parts = ranges(Backwards(64), A, 1 << 20);
    expect_partition(parts, rows);
    expect_balanced(parts, A, 64);
  }
}

TYPED_TEST(RowRanges, SmallStaysOnTheCallersThread) {
  Random random(4);
  const auto A = random_pattern<TypeParam>(random, 50, 30, 0.2);
  const auto caller = std::this_thread::get_id();
  int64_t calls = 0;
  for_each_row_range(Threads(8), A.view(), 1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(Range(begin, end), Range(0, 50));
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TYPED_TEST(RowRanges, NoWorkIsOneRange) {
  const OwnedPattern<TypeParam> no_rows(5, {}), some(5, {{1}, {}, {0, 4}});
  EXPECT_TRUE(ranges(Threads(4), no_rows.view(), 1000).empty());
  EXPECT_EQ(ranges(Threads(4), some.view(), 0), std::vector<Range>({{0, 3}}));
  EXPECT_EQ(ranges(Backwards(0), power_law_pattern<TypeParam>(999, 999).view(), 999), std::vector<Range>({{0, 999}}));
}

TYPED_TEST(RowRanges, ManyRealThreads) {
  const auto owned = power_law_pattern<TypeParam>(2000, 1000);
  const Threads exec(32);
  std::vector<std::atomic<int>> visits(2000);
  for_each_row_range(exec, owned.view(), 1000, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++visits[i];
  });
  EXPECT_EQ(exec.parts, 32);
  for (const auto& count : visits) EXPECT_EQ(count, 1);
}

TEST(Serial, RunsInOrder) {
  std::vector<int64_t> seen;
  Serial{}.parallel_for(4, [&](int64_t k) { seen.push_back(k); });
  EXPECT_EQ(seen, std::vector<int64_t>({0, 1, 2, 3}));
  EXPECT_EQ(Serial{}.threads(), 1);
}

TEST(Pool, DoesAsTheExecutorItStandsFor) {
  const Backwards backwards(5);
  const Pool pool = backwards, copy = pool;
  std::vector<int64_t> seen;
  copy.parallel_for(3, [&](int64_t k) { seen.push_back(k); });
  EXPECT_EQ(seen, std::vector<int64_t>({2, 1, 0}));
  EXPECT_EQ(copy.threads(), 5);
  EXPECT_EQ(backwards.parts, 3);
  EXPECT_EQ(Pool(Serial{}).threads(), 1);
}

TEST(Cuda, NotLinkedHere) {
  EXPECT_EQ(&cuda_linked, nullptr);
}

}  // namespace
}  // namespace gossamer::test
