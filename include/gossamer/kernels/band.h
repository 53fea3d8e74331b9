// SPDX-License-Identifier: BSD-3-Clause
// The entries of a pattern between two diagonals, and where they were:
//
//   { (i, j) ∈ A : low <= j - i <= high },        entry q of the band is entry positions[q] of A
//
// tril(k) is low = -rows, high = k; triu(k) is low = k, high = cols. Rows are sorted, so a row of the band is one piece
// of a row of A: O(rows log + entries of the band). Two steps, because the number of entries is not known in advance.
// Serial: it runs once per pattern.
#pragma once
#include <algorithm>
#include <utility>

#include <gossamer/kernels/csr.h>

namespace gossamer::kernels {

// The entries p … q - 1 of row i that lie in the band.
template <class I>
std::pair<int64_t, int64_t> band_row(const PatternView<I>& A, int64_t i, int64_t low, int64_t high) {
  const I *begin = A.indices + A.indptr[i], *end = A.indices + A.indptr[i + 1];
  const I* first = std::lower_bound(begin, end, i + low, [](I j, int64_t at) { return j < at; });
  const I* last = std::upper_bound(first, end, i + high, [](int64_t at, I j) { return at < j; });
  return {first - A.indices, last - A.indices};
}

// indptr: rows + 1. Returns the number of entries.
template <class I>
int64_t band_count(const PatternView<I>& A, int64_t low, int64_t high, I* indptr) {
  indptr[0] = 0;
  for (int64_t i = 0; i < A.rows; ++i) {
    const auto [p, q] = band_row(A, i, low, high);
    indptr[i + 1] = static_cast<I>(indptr[i] + (q - p));
  }
  return indptr[A.rows];
}

// indices, positions: the number that band_count returned.
template <class I>
void band_fill(const PatternView<I>& A, int64_t low, int64_t high, I* indices, I* positions) {
  for (int64_t i = 0; i < A.rows; ++i) {
    const auto [first, last] = band_row(A, i, low, high);
    for (int64_t p = first; p < last; ++p) *indices++ = A.indices[p], *positions++ = static_cast<I>(p);
  }
}

}  // namespace gossamer::kernels
