// SPDX-License-Identifier: BSD-3-Clause
// A sparse matrix in compressed sparse row form, as kernels see it: pointers and sizes, nothing owned.
//
// The invariants, checked once when a pattern is built (check_structure) and relied on ever after:
//   indptr has rows + 1 entries, starts at 0, never decreases and ends at nnz;
//   the columns of a row are indices[indptr[i]] … indices[indptr[i + 1] - 1]: in range, strictly ascending.
#pragma once
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "Gossamer's kernels count on IEEE arithmetic (NaN, infinity, the order of sums): compile without -ffast-math"
#endif
#include <cstdint>
#include <string>

#include <gossamer/kernels/half.h>

namespace gossamer {

// The structure alone. I is int32_t or int64_t.
template <class I>
struct PatternView {
  int64_t rows = 0, cols = 0, nnz = 0;
  const I* indptr = nullptr;
  const I* indices = nullptr;
  int64_t run_count = 0;  // of the runs of rows that are known, see kernels/runs.h
  const I* runs = nullptr;
};

// Structure and values. Values are (nnz, heads): one matrix a head, all on one pattern.
template <class T, class I>
struct Csr : PatternView<I> {
  const T* values = nullptr;
  int64_t heads = 1;
  const I* perm = nullptr;  // entry p has the value values[perm[p]]; null: values[p]. Lets Aᵀ share A's values.

  [[gnu::always_inline]] GOSSAMER_HD Sum<T> value(int64_t p, int64_t h = 0) const {
    return static_cast<Sum<T>>(values[(perm ? perm[p] : p) * heads + h]);
  }
};

// Whether indptr ascends from 0 to nnz and every column is in range: what a loop over the entries needs to stay in its
// arrays. One pass that the compiler vectorises.
template <class I>
bool in_bounds(const PatternView<I>& A) {
  if (A.indptr[0] != 0 || A.indptr[A.rows] != A.nnz) return false;
  bool good = true;
  for (int64_t i = 0; i < A.rows; ++i) good &= A.indptr[i] <= A.indptr[i + 1];
  for (int64_t p = 0; p < A.nnz; ++p) good &= (A.indices[p] >= 0) & (A.indices[p] < A.cols);
  return good;
}

// The place of `column` among ascending columns, first … last - 1; `last`, or that of a larger one, if it is not there.
template <class I>
GOSSAMER_HD inline int64_t place_of(const I* columns, int64_t first, int64_t last, I column) {
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (columns[middle] < column)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

// What breaks the invariants first, in words; empty if nothing does. O(rows + nnz). Unless `simple`, a row may hold a
// column several times: the pattern of a graph with parallel edges.
template <class I>
std::string check_structure(const PatternView<I>& A, bool simple = true) {
  using std::to_string;
  if (A.indptr[0] != 0) return "indptr[0] is " + to_string(A.indptr[0]) + ", not 0";
  for (int64_t i = 0; i < A.rows; ++i)
    if (A.indptr[i + 1] < A.indptr[i])
      return "indptr decreases from " + to_string(A.indptr[i]) + " to " + to_string(A.indptr[i + 1]) + " at row " +
             to_string(i);
  if (A.indptr[A.rows] != A.nnz)
    return "indptr ends at " + to_string(A.indptr[A.rows]) + " but there are " + to_string(A.nnz) + " indices";
  for (int64_t i = 0; i < A.rows; ++i) {
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
      const int64_t j = A.indices[p];
      const auto where = [i] { return " in row " + to_string(i); };
      if (j < 0 || j >= A.cols)
        return "column " + to_string(j) + where() + " is outside the " + to_string(A.cols) + " columns";
      if (p == A.indptr[i]) continue;
      if (simple && j == A.indices[p - 1]) return "column " + to_string(j) + where() + " appears twice";
      if (j < A.indices[p - 1])
        return "columns" + where() + " are not sorted: " + to_string(j) + " follows " + to_string(A.indices[p - 1]);
    }
  }
  return {};
}

}  // namespace gossamer
