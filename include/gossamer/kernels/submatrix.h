// SPDX-License-Identifier: BSD-3-Clause
// Rows and columns of a pattern, in any order and with repetitions, and where their entries were:
//
//   B[r, c] = A[rows[r], cols[c]],        entry q of B is entry positions[q] of A
//
// No `cols` (null) means all of them. O(cols of A + cols chosen + entries read + entries written), and a sort of the
// rows whose order the columns change. Two steps, because the number of entries is not known in advance. Serial: it
// runs once per pattern.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include <gossamer/kernels/csr.h>

namespace gossamer::kernels {

// For each column j of A, the columns of B it goes to: targets[starts[j]] … targets[starts[j + 1] - 1], ascending.
struct ColumnTargets {
  std::vector<int64_t> starts, targets;

  ColumnTargets(int64_t cols, int64_t count, const int64_t* chosen) : starts(cols + 1), targets(count) {
    for (int64_t c = 0; c < count; ++c) ++starts[chosen[c] + 1];
    for (int64_t j = 0; j < cols; ++j) starts[j + 1] += starts[j];
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (int64_t c = 0; c < count; ++c) targets[next[chosen[c]]++] = c;
  }
};

// indptr: count + 1. Returns the number of entries. The rows must be in range.
template <class I>
int64_t submatrix_count(const PatternView<I>& A, int64_t count, const int64_t* rows, const ColumnTargets* cols,
                        int64_t* indptr) {
  indptr[0] = 0;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t begin = A.indptr[rows[r]], end = A.indptr[rows[r] + 1];
    int64_t entries = end - begin;
    if (cols) {
      entries = 0;
      for (int64_t p = begin; p < end; ++p) entries += cols->starts[A.indices[p] + 1] - cols->starts[A.indices[p]];
    }
    indptr[r + 1] = indptr[r] + entries;
  }
  return indptr[count];
}

// indices, positions: the number that submatrix_count returned.
template <class I, class J>
void submatrix_fill(const PatternView<I>& A, int64_t count, const int64_t* rows, const ColumnTargets* cols, J* indices,
                    J* positions) {
  std::vector<std::pair<int64_t, int64_t>> row;  // (column, position)
  for (int64_t r = 0; r < count; ++r) {
    const int64_t begin = A.indptr[rows[r]], end = A.indptr[rows[r] + 1];
    row.clear();
    for (int64_t p = begin; p < end; ++p) {
      const int64_t j = A.indices[p];
      if (!cols) row.emplace_back(j, p);
      for (int64_t t = cols ? cols->starts[j] : 0; cols && t < cols->starts[j + 1]; ++t)
        row.emplace_back(cols->targets[t], p);
    }
    if (!std::is_sorted(row.begin(), row.end())) std::sort(row.begin(), row.end());
    for (const auto& [c, p] : row) *indices++ = static_cast<J>(c), *positions++ = static_cast<J>(p);
  }
}

}  // namespace gossamer::kernels
