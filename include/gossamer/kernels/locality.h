// SPDX-License-Identifier: BSD-3-Clause
// Whether the rows of a pattern follow each other, as those of grids, bands and meshes do, and those of graphs do not:
//
//   most entries (i, j) have an entry (i - 1, j - 1) or (i - 1, j) above them
//
// The dense rows that such a pattern names lie one behind the other. The processor sees that and fetches them unasked;
// asking for them besides (prefetch.h) takes more time than it saves.
#pragma once
#include <algorithm>
#include <cstdint>

#include <gossamer/kernels/csr.h>

namespace gossamer::kernels {

// A glance at a few rows, which takes a microsecond or two, so it need not be kept. It decides how a product is
// computed and never what it is: rows whose columns are in no order may be told either way.
template <class I>
bool rows_follow(const PatternView<I>& A) {
  constexpr int64_t rows = 16, entries = 4;
  int64_t seen = 0, found = 0;
  for (int64_t k = 1; k <= rows; ++k) {
    const int64_t i = A.rows * k / (rows + 1);
    if (i == 0) continue;
    const I *above = A.indices + A.indptr[i - 1], *row = A.indices + A.indptr[i], *end = A.indices + A.indptr[i + 1];
    for (const int64_t step = std::max<int64_t>((end - row) / entries, 1); row < end;
         row += std::min(step, end - row)) {
      const I j = *row, before = std::max<I>(j, 1) - 1;
      const I *above_end = A.indices + A.indptr[i], *at = std::lower_bound(above, above_end, before);
      ++seen;
      found += at != above_end && *at <= j;
    }
  }
  return 2 * found > seen;
}

}  // namespace gossamer::kernels
