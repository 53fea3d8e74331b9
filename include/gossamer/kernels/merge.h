// SPDX-License-Identifier: BSD-3-Clause
// The union and the intersection of two patterns of one shape, row by row, and where the entries are:
//
//   union C ⊇ A, B:             entry a of A is entry at_A[a] of C, entry b of B is entry at_B[b] of C
//   intersection C ⊆ A, B:      entry p of C is entry at_A[p] of A and entry at_B[p] of B
//
// O(rows + nnz(A) + nnz(B)). Two passes, because the number of entries is not known in advance: first `count`, then
// `fill`. Symbolic: once per pair of patterns. Which of two columns comes first cannot be predicted, so the loops do
// not branch on it: they write the entry in any case, and step forward only if it belongs there.
//
// A first sum C = A + B writes the values with the union, in one pass and without maps: union_sum.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>
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

// How many columns row i of A and of B have in common. Each of eight columns of A is compared with eight of B at once,
// and whichever eight end first make room for the next: a third of the time of a walk. The last columns of B, beside
// which there are no eight to read, are walked.
template <class I>
[[gnu::always_inline]] inline I common_columns(const PatternView<I>& A, const PatternView<I>& B, int64_t i) {
  constexpr int n = 8;
  int64_t a = A.indptr[i], b = B.indptr[i];
  const int64_t end_a = A.indptr[i + 1], end_b = B.indptr[i + 1];
  if (B.nnz - end_b < n) {
    I next_a, next_b, both = 0;
    merge_row(A, B, i, next_a, next_b, [&](I, I, I, bool in_a, bool in_b) { both += in_a & in_b; });
    return both;
  }
  const Vec<I, n> lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  Vec<I, n> both{};  // each lane less by one for each of its columns
  while (a < end_a && b < end_b) {
    const int64_t of_A = std::min<int64_t>(n, end_a - a), of_B = std::min<int64_t>(n, end_b - b);
    Vec<I, n> columns, same{};
    __builtin_memcpy(&columns, B.indices + b, sizeof columns);
    for (int64_t k = 0; k < of_A; ++k) same |= columns == A.indices[a + k];
    both += same & (lanes < static_cast<I>(of_B));
    const I last_a = A.indices[a + of_A - 1], last_b = B.indices[b + of_B - 1];
    a += last_a <= last_b ? of_A : 0;
    b += last_b <= last_a ? of_B : 0;
  }
  return -sum_lanes<n, I>(both);
}

// indptr of the union (or the intersection): rows + 1.
template <Host E, class I>
void merge_count(const E& exec, const PatternView<I>& A, const PatternView<I>& B, bool intersect, I* indptr) {
  for_each_row_range(exec, A, 2, [&](int64_t begin, int64_t end) {
    simd([&]<int>() GOSSAMER_INLINED {
      for (int64_t i = begin; i < end; ++i) {
        const I both = common_columns(A, B, i);
        const I all = A.indptr[i + 1] - A.indptr[i] + B.indptr[i + 1] - B.indptr[i];
        indptr[i + 1] = intersect ? both : all - both;
      }
    });
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

// Rows begin … end - 1 of C = A + B, from entry p on; the entry behind the last one. What is not stored counts as 0,
// which makes 0 of -0. This loop does branch: rows of grids, bands and blocks repeat the branches of the row before,
// which then cost nothing (a third of the time of a walk without them), and in a random graph both ways take as long.
template <class T, class I>
I sum_rows(const Csr<T, I>& A, const Csr<T, I>& B, int64_t begin, int64_t end, I p, I* indptr, I* indices, T* values) {
  constexpr Sum<T> nothing = 0;
  const auto write = [&](I column, Sum<T> value) {
    indices[p] = column;
    values[p++] = static_cast<T>(value);
  };
  for (int64_t i = begin; i < end; ++i) {
    I a = A.indptr[i], b = B.indptr[i];
    const I end_a = A.indptr[i + 1], end_b = B.indptr[i + 1];
    while (a < end_a && b < end_b) {
      const I j = A.indices[a], k = B.indices[b];
      if (j == k)
        write(j, static_cast<Sum<T>>(A.values[a++]) + static_cast<Sum<T>>(B.values[b++]));
      else if (j < k)
        write(j, nothing + static_cast<Sum<T>>(A.values[a++]));
      else
        write(k, nothing + static_cast<Sum<T>>(B.values[b++]));
    }
    for (; a < end_a; ++a) write(A.indices[a], nothing + static_cast<Sum<T>>(A.values[a]));
    for (; b < end_b; ++b) write(B.indices[b], nothing + static_cast<Sum<T>>(B.values[b]));
    indptr[i + 1] = p;
  }
  return p;
}

// C = A + B on the union:  C[i, j] = A[i, j] + B[i, j], what is not stored being 0. Returns nnz(C). One pass, so the
// caller gives room for the most there can be: indices, values: nnz(A) + nnz(B), indptr: rows + 1. The rows of every
// thread but the last are counted first, because the next thread's entries begin where they end. Rounded as the sum of
// two placed parts (place.h), bit for bit.
template <Host E, class T, class I>
int64_t union_sum(const E& exec, const Csr<T, I>& A, const Csr<T, I>& B, I* indptr, I* indices, T* values) {
  constexpr int64_t worth_a_thread = 8192;
  const int64_t parts = std::clamp<int64_t>((A.nnz + B.nnz) / 2 / worth_a_thread, 1, exec.threads());
  const auto range = [&](int64_t k, int64_t of) { return row_range<I>(A, k, of); };
  std::vector<I> common(parts * parts);  // of each part of a part, for all threads count them together
  if (parts > 1)
    exec.parallel_for(parts * (parts - 1), [&](int64_t k) {
      simd([&]<int>() GOSSAMER_INLINED {
        const RowRange rows = range(k, parts * parts);
        I found = 0;  // not in the array, where threads would write side by side
        for (int64_t i = rows.begin; i < rows.end; ++i) found += common_columns<I>(A, B, i);
        common[k] = found;
      });
    });
  indptr[0] = 0;
  std::vector<I> ends(parts);
  const auto part = [&](int64_t k) {
    const RowRange rows = range(k, parts);
    I first = A.indptr[rows.begin] + B.indptr[rows.begin];
    for (int64_t before = 0; before < k * parts; ++before) first -= common[before];
    ends[k] = sum_rows(A, B, rows.begin, rows.end, first, indptr, indices, values);
  };
  if (parts == 1)
    part(0);
  else
    exec.parallel_for(parts, part);
  return ends.back();
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
#define GOSSAMER_UNION_SUM(T, I, ...) \
  __VA_ARGS__ template int64_t union_sum(const Pool&, const Csr<T, I>&, const Csr<T, I>&, I*, I*, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_MERGE, extern)
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_UNION_SUM, extern)
#endif

}  // namespace gossamer::kernels
