// SPDX-License-Identifier: BSD-3-Clause
// Where given places of a matrix are stored:
//
//   A[rows[k], cols[k]] is entry positions[q] of A, for k = which[q];        places that are not stored are left out
//
// A binary search in each row: O(count log(longest row)). The diagonal is the places (i, i + k). Serial: it runs once
// per pattern.
#pragma once
#include <algorithm>

#include <gossamer/kernels/csr.h>

namespace gossamer::kernels {

// which, positions: room for `count`. Returns how many were found. The places must be in range.
template <class I>
int64_t find_entries(const PatternView<I>& A, int64_t count, const int64_t* rows, const int64_t* cols, int64_t* which,
                     int64_t* positions) {
  int64_t found = 0;
  for (int64_t k = 0; k < count; ++k) {
    const I *begin = A.indices + A.indptr[rows[k]], *end = A.indices + A.indptr[rows[k] + 1];
    const I* at = std::lower_bound(begin, end, cols[k], [](I j, int64_t wanted) { return j < wanted; });
    if (at == end || *at != cols[k]) continue;
    which[found] = k;
    positions[found++] = at - A.indices;
  }
  return found;
}

}  // namespace gossamer::kernels
