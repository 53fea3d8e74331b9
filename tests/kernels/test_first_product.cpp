// SPDX-License-Identifier: BSD-3-Clause
// The first product of two patterns: pattern and values in one pass, against one after the other.
#include <gossamer/kernels/first_product.h>

#include <gossamer/kernels/spgemm.h>
#include <gossamer/kernels/spgemm_pattern.h>
#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

using I = int32_t;

// Pattern and values at once are those of one after the other, on any number of threads.
template <class T>
void expect_first_product(const OwnedPattern<I>& A, const OwnedPattern<I>& B) {
  Random random(12);
  const auto a = random.values<T>(A.nnz()), b = random.values<T>(B.nnz());
  std::vector<int64_t> work(A.rows + 1), indptr(A.rows + 1);
  kernels::spgemm_work(Serial{}, A.view(), B.view(), work.data());
  const auto pieces = kernels::spgemm_pattern(Pool(Serial{}), A.view(), B.view(), work.data(), indptr.data());
  const int64_t nnz = indptr[A.rows], products = work[A.rows];
  std::vector<I> want(nnz), starts(indptr.begin(), indptr.end());
  kernels::join(Pool(Serial{}), pieces, indptr.data(), want.data());
  std::vector<T> want_values(nnz);
  const PatternView<I> C{A.rows, B.cols, nnz, starts.data(), want.data()};
  kernels::spgemm_nn(Pool(Serial{}), with_values(A, a), with_values(B, b), C, want_values.data());
  for (const int64_t count : {1, 2, 5}) {
    const Threads threads(count);
    std::vector<I> got(A.rows + 1), room(products), columns(nnz);
    std::vector<T> value_room(products), values(nnz);
    const auto found = kernels::first_product(Pool(threads), with_values(A, a), with_values(B, b), work.data(),
                                              got.data(), room.data(), value_room.data());
    kernels::close_up(Pool(threads), found, room.data(), value_room.data(), got.data(), columns.data(), values.data());
    EXPECT_EQ(got, starts);
    EXPECT_EQ(columns, want);
    expect_same_bits(values, want_values);
  }
}

// n rows with these offsets from the diagonal, and every `gap`-th row without the last of them.
OwnedPattern<I> band(I n, const std::vector<I>& offsets, I gap) {
  std::vector<std::vector<I>> rows(n);
  for (I i = 0; i < n; ++i)
    for (const I d : offsets)
      if (i + d >= 0 && i + d < n && (i % gap || d != offsets.back())) rows[i].push_back(i + d);
  return OwnedPattern<I>(n, rows);
}

TEST(Spgemm, AFirstProductIsThePatternAndThenTheValues) {
  Random random(13);
  expect_first_product<double>(random_pattern<I>(random, 300, 50, 0.2), random_pattern<I>(random, 50, 70, 0.2));
  expect_first_product<float>(random_pattern<I>(random, 90, 60, 0.3), random_pattern<I>(random, 60, 9000, 0.003));
  expect_first_product<bfloat16>(random_pattern<I>(random, 90, 60, 0.9), random_pattern<I>(random, 60, 700, 0.5));
  expect_first_product<double>(OwnedPattern<I>(0, {{}, {}}), OwnedPattern<I>(4, {}));
  expect_first_product<double>(OwnedPattern<I>(3, {{0, 1, 2}, {0, 2}, {}, {1, 2}}),
                               OwnedPattern<I>(10000, {{5000, 9999}, {}, {4, 5000}}));
  // Rows that repeat the one before, moved by a column; with interruptions, in either factor.
  const auto three = band(4000, {-1, 0, 1}, 4001), five = band(4000, {-60, -1, 0, 1, 60}, 60);
  expect_first_product<double>(three, three);
  expect_first_product<float16>(five, three);
  expect_first_product<float>(three, five);
  expect_first_product<double>(five, five);
  expect_first_product<double>(band(4000, {-3, 9}, 5), band(4000, {-900, 0, 1, 2, 3, 4, 5, 6, 7, 8, 900}, 7));
}

TEST(Spgemm, RowsThatDoNotAscendAreSeen) {
  for (const auto& rows : {std::vector<std::vector<I>>{{3, 4}, {}, {0, 1, 4}, {2}}, {{}, {}}, {{4}, {3}, {2, 3}}})
    EXPECT_TRUE(kernels::rows_ascend(Serial{}, OwnedPattern<I>(5, rows).view()));
  for (const auto& rows : {std::vector<std::vector<I>>{{4, 3}}, {{1}, {}, {0, 2, 2}}, {{0, 1}, {4, 0}, {1}}})
    EXPECT_FALSE(kernels::rows_ascend(Serial{}, OwnedPattern<I>(5, rows).view()));
}

}  // namespace
}  // namespace gossamer::test
