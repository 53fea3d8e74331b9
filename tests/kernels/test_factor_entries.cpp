// SPDX-License-Identifier: BSD-3-Clause
// The entries of the Cholesky factor: those that eliminating booleans fills in, at the places where its numbers are.
#include <gossamer/kernels/factor_entries.h>
#include <gossamer/kernels/multifrontal.h>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

TEST(FactorEntries, AreWhatFillsIn) {
  Random random(1);
  for (const int64_t n : {0, 1, 2, 9, 33, 60})
    for (const int64_t one_in : {1, 4, 15}) {
      std::vector<std::vector<int32_t>> rows(n);
      for (int32_t i = 0; i < n; ++i)
        for (int32_t j = 0; j <= i; ++j) {
          if (i != j && random.below(one_in) > 0) continue;
          rows[i].push_back(j);
          if (i != j) rows[j].push_back(i);
        }
      for (auto& row : rows) std::sort(row.begin(), row.end());
      const OwnedPattern<int32_t> A{n, rows};
      const auto tree = kernels::assembly_tree(A.view(), random.permutation<int32_t>(n));
      const FactorEntries L = kernels::factor_entries(A.view(), tree);
      std::vector<char> filled(n * n, 0);
      for (int64_t i = 0; i < n; ++i)
        for (const int32_t j : rows[i]) filled[tree.rank[i] * n + tree.rank[j]] = 1;
      for (int64_t k = 0; k < n; ++k)
        for (int64_t i = k + 1; i < n; ++i)
          for (int64_t j = k + 1; j < n; ++j) filled[i * n + j] |= filled[i * n + k] & filled[j * n + k];
      std::vector<double> numbers(tree.size()), found(L.count());
      for (int64_t i = 0, q = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j)
          if (filled[i * n + j]) {
            ASSERT_LT(q, L.indptr[i + 1]);
            EXPECT_EQ(L.indices[q++], j) << n << ": row " << i;
          }
      for (int64_t i = 0; i < n; ++i)
        for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
          const auto [column, row] = std::minmax(tree.rank[i], tree.rank[A.indices[p]]);
          EXPECT_EQ(L.indices[L.at[p]], column);
          EXPECT_TRUE(L.at[p] >= L.indptr[row] && L.at[p] < L.indptr[row + 1]);
          const int64_t place = tree.destination[p];
          EXPECT_EQ(L.places[L.at[p]], place >= 0 ? place : ~place);
        }
      for (size_t q = 0; q < found.size(); ++q) found[q] = static_cast<double>(q);
      const std::vector<double> given = found;
      kernels::spread(L, given.data(), tree.size(), numbers.data());
      kernels::collect(L, numbers.data(), found.data());
      EXPECT_EQ(found, given);
    }
}

}  // namespace
}  // namespace gossamer::test
