// SPDX-License-Identifier: BSD-3-Clause
// The union and the intersection of two patterns of one shape, row by row, and where their entries come from:
//
//   entry p of the result is entry from_A[p] of A and entry from_B[p] of B, -1 where there is none
//
// O(rows + nnz(A) + nnz(B)). Two passes, because the number of entries is not known in advance: first `count`, then
// `fill`. Symbolic: once per pair of patterns.
#pragma once
#include "exec.h"

namespace gossamer::kernels {

// Calls f(column, a, b) for every column in row i of A or of B, ascending; a, b = the entry's position or -1.
template <class I, class F>
void merge_row(const PatternView<I>& A, const PatternView<I>& B, int64_t i, const F& f) {
  I a = A.indptr[i], b = B.indptr[i];
  const I end_a = A.indptr[i + 1], end_b = B.indptr[i + 1];
  while (a < end_a || b < end_b) {
    const bool in_a = a < end_a && (b == end_b || A.indices[a] <= B.indices[b]);
    const bool in_b = b < end_b && (a == end_a || B.indices[b] <= A.indices[a]);
    f(in_a ? A.indices[a] : B.indices[b], in_a ? a : I{-1}, in_b ? b : I{-1});
    a += in_a;
    b += in_b;
  }
}

// indptr of the union (or the intersection): rows + 1.
template <Host E, class I>
void merge_count(const E& exec, const PatternView<I>& A, const PatternView<I>& B, bool intersect, I* indptr) {
  for_each_row_range(exec, A, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      I count = 0;
      merge_row(A, B, i, [&](I, I a, I b) { count += !intersect || (a >= 0 && b >= 0); });
      indptr[i + 1] = count;
    }
  });
  indptr[0] = 0;
  for (int64_t i = 0; i < A.rows; ++i) indptr[i + 1] += indptr[i];
}

// indices, from_A, from_B: indptr[rows] each. to_A, to_B: nnz(A), nnz(B), the way back: entry a of A is entry to_A[a]
// of the result, or -1.
template <Host E, class I>
void merge_fill(const E& exec, const PatternView<I>& A, const PatternView<I>& B, bool intersect, const I* indptr,
                I* indices, I* from_A, I* to_A, I* from_B, I* to_B) {
  for_each_row_range(exec, A, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      I p = indptr[i];
      merge_row(A, B, i, [&](I column, I a, I b) {
        const bool kept = !intersect || (a >= 0 && b >= 0);
        if (a >= 0) to_A[a] = kept ? p : I{-1};
        if (b >= 0) to_B[b] = kept ? p : I{-1};
        if (!kept) return;
        indices[p] = column;
        from_A[p] = a;
        from_B[p] = b;
        ++p;
      });
    }
  });
}

}  // namespace gossamer::kernels
