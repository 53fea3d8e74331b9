// SPDX-License-Identifier: BSD-3-Clause
// The level sets of a triangle: rows that need only rows of earlier levels, and so can be solved at once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gossamer/kernels/csr.h>

namespace gossamer {

// Rows order[level_ptr[l]] … order[level_ptr[l + 1] - 1] need only rows of earlier levels. level_ptr has n + 1 entries,
// those past the last level being n. Walked backward, the levels of L serve Lᵀ. order = nullptr: not known.
template <class I>
struct Levels {
  const I* level_ptr = nullptr;
  const I* order = nullptr;
  bool backward = false;

  int64_t count(int64_t n) const {
    return std::lower_bound(level_ptr, level_ptr + n + 1, static_cast<I>(n)) - level_ptr;
  }
};

namespace kernels {

// level_ptr: n + 1; order: n, ascending in each level. O(n + nnz), serial: once per pattern.
template <class I>
void levels(const PatternView<I>& L, bool upper, I* level_ptr, I* order) {
  const int64_t n = L.rows;
  std::vector<I> level(n);
  std::fill(level_ptr, level_ptr + n + 1, I{0});
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = upper ? n - 1 - k : k;
    I first = 0;
    for (int64_t p = L.indptr[i]; p < L.indptr[i + 1]; ++p)
      if (const int64_t j = L.indices[p]; upper ? j > i : j < i) first = std::max<I>(first, level[j] + 1);
    level[i] = first;
    ++level_ptr[first + 1];
  }
  for (int64_t l = 0; l < n; ++l) level_ptr[l + 1] += level_ptr[l];
  std::vector<I> next(level_ptr, level_ptr + n);
  for (int64_t i = 0; i < n; ++i) order[next[level[i]]++] = static_cast<I>(i);
}

}  // namespace kernels
}  // namespace gossamer
