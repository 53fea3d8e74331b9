// SPDX-License-Identifier: BSD-3-Clause
// What elimination fills in, against elimination of a dense table of booleans; and the plain loops of factor.h, whose
// product must be the matrix.
#include <gossamer/kernels/factor.h>

#include "dense.h"

namespace gossamer::test {
namespace {

using Table = std::vector<std::vector<bool>>;

Table scattered(Random& random, int64_t n, int64_t one_in, bool symmetric) {
  Table stored(n, std::vector<bool>(n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      stored[i][j] = random.below(one_in) == 0;
      if (symmetric && j < i) stored[i][j] = stored[j][i];
    }
  return stored;
}

// Columns from last to first: `fill` asks for no order.
template <class I>
OwnedPattern<I> pattern_of(const Table& stored) {
  std::vector<std::vector<I>> rows(stored.size());
  for (size_t i = 0; i < stored.size(); ++i)
    for (size_t j = stored.size(); j-- > 0;)
      if (stored[i][j]) rows[i].push_back(static_cast<I>(j));
  return OwnedPattern<I>(static_cast<int64_t>(stored.size()), rows);
}

Table eliminated(Table stored) {
  const size_t n = stored.size();
  for (size_t k = 0; k < n; ++k) {
    stored[k][k] = true;
    for (size_t i = k + 1; i < n; ++i)
      for (size_t j = k + 1; j < n && stored[i][k]; ++j) stored[i][j] = stored[i][j] || stored[k][j];
  }
  return stored;
}

template <class I>
class Factor : public testing::Test {};
TYPED_TEST_SUITE(Factor, IndexTypes);

TYPED_TEST(Factor, FillIsThatOfElimination) {
  using I = TypeParam;
  Random random(1);
  for (const int64_t n : {0, 1, 2, 7, 30, 60})
    for (const int64_t one_in : {2, 5, 12, 40})
      for (const bool symmetric : {false, true}) {
        const Table stored = scattered(random, n, one_in, symmetric), wanted = eliminated(stored);
        const OwnedPattern<I> A = pattern_of<I>(stored);
        const kernels::Filled<I> F = kernels::fill(A.view());
        ASSERT_EQ(check_structure(F.view()), "");
        int64_t count = 0;
        for (int64_t i = 0; i < n; ++i) {
          EXPECT_EQ(F.indices[F.diagonal[i]], static_cast<I>(i));
          for (int64_t j = 0; j < n; ++j) count += wanted[i][j];
          for (int64_t p = F.indptr[i]; p < F.indptr[i + 1]; ++p) ASSERT_TRUE(wanted[i][F.indices[p]]) << i;
        }
        EXPECT_EQ(count, F.view().nnz) << n << ", one in " << one_in;
      }
}

TYPED_TEST(Factor, TheProductOfThePlainLoopsIsTheMatrix) {
  using I = TypeParam;
  Random random(2);
  constexpr int64_t n = 40, heads = 2;
  const kernels::Filled<I> F = kernels::fill(pattern_of<I>(scattered(random, n, 9, true)).view());
  std::vector<double> values = random.template values<double>(F.view().nnz * heads);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t h = 0; h < heads; ++h) values[F.diagonal[i] * heads + h] += 10;
  std::vector<double> factors = values;
  kernels::plain::factor_lu(F.view(), F.diagonal.data(), heads, factors.data());
  for (int64_t h = 0; h < heads; ++h) {
    const auto at = [&](const std::vector<double>& v, int64_t i, int64_t j) {
      const int64_t p = place_of(F.indices.data(), F.indptr[i], F.indptr[i + 1], static_cast<I>(j));
      return p < F.indptr[i + 1] && F.indices[p] == static_cast<I>(j) ? v[p * heads + h] : 0.0;
    };
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k <= std::min(i, j); ++k)
          sum += (k == i ? 1 : at(factors, i, k)) * at(factors, k, k) * (k == j ? 1 : at(factors, k, j));
        ASSERT_NEAR(sum, at(values, i, j), 1e-12) << i << ", " << j;
      }
  }
}

}  // namespace
}  // namespace gossamer::test
