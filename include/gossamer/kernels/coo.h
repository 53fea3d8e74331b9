// SPDX-License-Identifier: BSD-3-Clause
// From triplets to CSR. The pattern is the set of distinct (row, col); duplicates share an entry, and their values are
// to be added there:
//
//   A[rows[k], cols[k]] += values[k],        slot[k] = the entry that triplet k goes to
//
// Two steps, because the number of entries is not known in advance: `sort` orders the triplets and counts, `compress`
// writes. O(m + nnz log(longest row)) for m rows. Serial: it runs once per matrix.
#pragma once
#include <algorithm>
#include <cstdint>

namespace gossamer::kernels {

// Orders the triplets by (row, col), equal ones as they came: order[0 … n). starts: rows + 1, where each row begins in
// `order`. Returns the number of distinct places. Indices must be in range.
inline int64_t coo_sort(int64_t m, int64_t n, const int64_t* rows, const int64_t* cols, int64_t* starts,
                        int64_t* order) {
  std::fill(starts, starts + m + 1, 0);
  for (int64_t k = 0; k < n; ++k) ++starts[rows[k] + 1];
  for (int64_t i = 0; i < m; ++i) starts[i + 1] += starts[i];
  for (int64_t k = 0; k < n; ++k) order[starts[rows[k]]++] = k;
  for (int64_t i = m; i > 0; --i) starts[i] = starts[i - 1];  // every start had moved to its end
  starts[0] = 0;

  int64_t distinct = 0;
  for (int64_t i = 0; i < m; ++i) {
    int64_t *begin = order + starts[i], *end = order + starts[i + 1];
    const auto before = [cols](int64_t a, int64_t b) { return cols[a] < cols[b]; };
    if (!std::is_sorted(begin, end, before)) std::stable_sort(begin, end, before);
    for (int64_t* k = begin; k < end; ++k) distinct += k == begin || cols[*k] != cols[k[-1]];
  }
  return distinct;
}

// indptr: m + 1; indices: the count returned by coo_sort; slot: n.
template <class I>
void coo_compress(int64_t m, const int64_t* cols, const int64_t* starts, const int64_t* order, I* indptr, I* indices,
                  int64_t* slot) {
  int64_t entries = 0;
  indptr[0] = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t k = starts[i]; k < starts[i + 1]; ++k) {
      if (k == starts[i] || cols[order[k]] != cols[order[k - 1]]) indices[entries++] = static_cast<I>(cols[order[k]]);
      slot[order[k]] = entries - 1;
    }
    indptr[i + 1] = static_cast<I>(entries);
  }
}

}  // namespace gossamer::kernels
