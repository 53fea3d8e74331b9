// SPDX-License-Identifier: BSD-3-Clause
// The union and the intersection of two patterns of one shape, row by row, and where the entries are:
//
//   union C ⊇ A, B:             entry a of A is entry at_A[a] of C, entry b of B is entry at_B[b] of C
//   intersection C ⊆ A, B:      entry p of C is entry at_A[p] of A and entry at_B[p] of B
//
// O(rows + nnz(A) + nnz(B)). Two passes, because the number of entries is not known in advance: first `count`, then
// `fill`. Symbolic: once per pair of patterns. Which of two columns comes first cannot be predicted, so the loops do
// not branch on it: they write the entry in any case, and step forward only if it belongs there.
#pragma once
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// Walks row i of both while neither is at its end: f(column, a, b, in_a, in_b). Then a and b are where it stopped.
template <class I, class F>
[[gnu::always_inline]] inline void merge_row(const PatternView<I>& A, const PatternView<I>& B, int64_t i, I& a, I& b,
                                             const F& f) {
  a = A.indptr[i];
  b = B.indptr[i];
  const I end_a = A.indptr[i + 1], end_b = B.indptr[i + 1];
  while (a < end_a && b < end_b) {
    const I j = A.indices[a], k = B.indices[b];
    const bool in_a = j <= k, in_b = k <= j;
    f(in_a ? j : k, a, b, in_a, in_b);
    a += in_a;
    b += in_b;
  }
}

// indptr of the union (or the intersection): rows + 1.
template <Host E, class I>
void merge_count(const E& exec, const PatternView<I>& A, const PatternView<I>& B, bool intersect, I* indptr) {
  for_each_row_range(exec, A, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      I a, b, both = 0;
      merge_row(A, B, i, a, b, [&](I, I, I, bool in_a, bool in_b) { both += in_a & in_b; });
      const I all = A.indptr[i + 1] - A.indptr[i] + B.indptr[i + 1] - B.indptr[i];
      indptr[i + 1] = intersect ? both : all - both;
    }
  });
  indptr[0] = 0;
  for (int64_t i = 0; i < A.rows; ++i) indptr[i + 1] += indptr[i];
}

// indices: indptr[rows]. at_A, at_B: nnz(A), nnz(B).
template <Host E, class I>
void union_fill(const E& exec, const PatternView<I>& A, const PatternView<I>& B, const I* indptr, I* indices, I* at_A,
                I* at_B) {
  for_each_row_range(exec, A, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      I a, b, p = indptr[i];
      merge_row(A, B, i, a, b, [&](I column, I next_a, I next_b, bool, bool) {
        indices[p] = column;
        // Writes both maps at every step. If the entry of A (or B) is not in this column, the walk stays at it, and its
        // slot is written again until it is.
        at_A[next_a] = at_B[next_b] = p++;
      });
      for (; a < A.indptr[i + 1]; ++a, ++p) indices[p] = A.indices[a], at_A[a] = p;
      for (; b < B.indptr[i + 1]; ++b, ++p) indices[p] = B.indices[b], at_B[b] = p;
    }
  });
}

// indices, at_A, at_B: indptr[rows].
template <Host E, class I>
void intersection_fill(const E& exec, const PatternView<I>& A, const PatternView<I>& B, const I* indptr, I* indices,
                       I* at_A, I* at_B) {
  for_each_row_range(exec, A, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      I a, b, p = indptr[i];
      const I last = indptr[i + 1];
      merge_row(A, B, i, a, b, [&](I column, I next_a, I next_b, bool in_a, bool in_b) {
        if (p == last) return;  // all found: there is no room to write on trial
        indices[p] = column;
        at_A[p] = next_a;
        at_B[p] = next_b;
        p += in_a & in_b;
      });
    }
  });
}

// Under Pool, compiled once: src/cpu/merge.cpp.
#define GOSSAMER_MERGE(I, ...)                                                                                         \
  __VA_ARGS__ template void merge_count(const Pool&, const PatternView<I>&, const PatternView<I>&, bool, I*);          \
  __VA_ARGS__ template void union_fill(const Pool&, const PatternView<I>&, const PatternView<I>&, const I*, I*, I*,    \
                                       I*);                                                                            \
  __VA_ARGS__ template void intersection_fill(const Pool&, const PatternView<I>&, const PatternView<I>&, const I*, I*, \
                                              I*, I*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_MERGE, extern)
#endif

}  // namespace gossamer::kernels
