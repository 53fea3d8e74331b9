// SPDX-License-Identifier: BSD-3-Clause
// From triplets to CSR. The pattern is the set of distinct (row, col); duplicates share an entry, and their values are
// to be added there:
//
//   A[rows[k], cols[k]] += values[k],        slot[k] = the entry that triplet k goes to
//
// Two steps, because the number of entries is not known in advance: `sort` orders the triplets and counts, `compress`
// writes. O(m + nnz log(longest row)) for m rows. Triplets that come by rows, as a sampler of neighbours draws them,
// are not moved; the rows are sorted on all threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// Whether every number is in 0 … size - 1: none of them is negative, and nothing less than none is left of the size.
template <Host E>
bool coo_in_range(const E&, int64_t n, const int64_t* numbers, int64_t size) {
  uint64_t negative = 0;
  for (int64_t k = 0; k < n; ++k) {
    const auto number = static_cast<uint64_t>(numbers[k]);
    negative |= number | (static_cast<uint64_t>(size - 1) - number);
  }
  return negative >> 63 == 0;
}

// Orders triplets of one row by column, equal ones as they came. A column and the place it came from are one number, if
// they fit: those are sorted without looking anything up.
inline void sort_row(const int64_t* cols, bool narrow, int64_t* begin, int64_t* end, std::vector<uint64_t>& keys) {
  const auto before = [cols](int64_t a, int64_t b) { return cols[a] < cols[b]; };
  if (std::is_sorted(begin, end, before)) return;
  if (!narrow) return std::stable_sort(begin, end, before);
  keys.clear();
  for (int64_t* k = begin; k < end; ++k)
    keys.push_back(static_cast<uint64_t>(cols[*k]) << 32 | static_cast<uint64_t>(*k));
  std::sort(keys.begin(), keys.end());
  for (size_t k = 0; k < keys.size(); ++k) begin[k] = static_cast<int64_t>(keys[k] & 0xffffffff);
}

// Orders the triplets by (row, col), equal ones as they came: order[0 … n). starts: rows + 1, where each row begins in
// `order`. Returns the number of distinct places. Indices must be in range.
template <Host E>
int64_t coo_sort(const E& exec, int64_t m, int64_t n, const int64_t* rows, const int64_t* cols, int64_t* starts,
                 int64_t* order) {
  bool by_rows = true;
  int64_t widest = n;
  std::fill(starts, starts + m + 1, 0);
  for (int64_t k = 0; k < n; ++k) {
    ++starts[rows[k] + 1];
    by_rows &= rows[std::max<int64_t>(k - 1, 0)] <= rows[k];
    widest |= cols[k];
  }
  for (int64_t i = 0; i < m; ++i) starts[i + 1] += starts[i];
  if (by_rows) {
    std::iota(order, order + n, int64_t{0});
  } else {
    for (int64_t k = 0; k < n; ++k) order[starts[rows[k]]++] = k;
    for (int64_t i = m; i > 0; --i) starts[i] = starts[i - 1];  // every start had moved to its end
    starts[0] = 0;
  }

  std::atomic<int64_t> distinct = 0;
  const PatternView<int64_t> all{m, 0, n, starts, nullptr};
  for_each_row_range(exec, all, 8, [&](int64_t first, int64_t last) {
    std::vector<uint64_t> keys;
    int64_t found = 0;
    for (int64_t i = first; i < last; ++i) {
      int64_t *begin = order + starts[i], *end = order + starts[i + 1];
      sort_row(cols, widest >> 32 == 0, begin, end, keys);
      for (int64_t* k = begin; k < end; ++k) found += k == begin || cols[*k] != cols[k[-1]];
    }
    distinct += found;
  });
  return distinct;
}

// The columns in that order, parallel edges and all: indices[k] = cols[order[k]].
template <class I>
void coo_columns(int64_t n, const int64_t* cols, const int64_t* order, I* indices) {
  for (int64_t k = 0; k < n; ++k) indices[k] = static_cast<I>(cols[order[k]]);
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

// Compiled once: src/cpu/coo.cpp.
#define GOSSAMER_COO_SORT(...)                                                                                   \
  __VA_ARGS__ template bool coo_in_range(const Pool&, int64_t, const int64_t*, int64_t);                         \
  __VA_ARGS__ template int64_t coo_sort(const Pool&, int64_t, int64_t, const int64_t*, const int64_t*, int64_t*, \
                                        int64_t*);
#define GOSSAMER_COO(I, ...)                                                          \
  __VA_ARGS__ template void coo_columns(int64_t, const int64_t*, const int64_t*, I*); \
  __VA_ARGS__ template void coo_compress(int64_t, const int64_t*, const int64_t*, const int64_t*, I*, I*, int64_t*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_COO_SORT(extern)
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_COO, extern)
#endif

}  // namespace gossamer::kernels
