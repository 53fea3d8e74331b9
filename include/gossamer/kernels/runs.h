// SPDX-License-Identifier: BSD-3-Clause
// Runs: rows one after the other that have their entries at the same distances from the diagonal, as the rows of grids
// and bands do. Inside a run the columns follow from those of its first row, and no index is read:
//
//   indices[indptr[i] + k] = i + offset[k],    offset[k] = indices[indptr[b] + k] - b        rows b <= i < end
//   y[i] = Σ_k values[indptr[b] + (i - b) n + k] x[i + offset[k]]                            n entries a row
//
// In the transpose of A, whose values are A's through perm, a run also has the values of an entry at equal steps:
//
//   perm[indptr[i] + k] = perm[indptr[b] + k] + (i - b) step[k],    step[k] = perm[indptr[b + 1] + k] - perm[indptr[b]
//   + k]
//
// A run is its first row; A.runs holds these rows in order, and A.rows at the end, if they are known. The sums are
// those of the plain loop in the same order: the same bits.
#pragma once
#include <algorithm>
#include <vector>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/prefetch.h>
#include <gossamer/kernels/simd.h>

namespace gossamer::kernels {

constexpr int64_t worth_a_run = 8;   // rows a run, on average
constexpr int64_t most_entries = 9;  // of a row in a run: as many as a square of neighbours has

// Whether row i, i > b, continues the run that begins with row b. perm: null, or that of a transpose.
template <class I>
bool continues_run(const PatternView<I>& A, const I* perm, int64_t b, int64_t i) {
  const int64_t before = A.indptr[i - 1], p = A.indptr[i], n = p - before;
  if (A.indptr[i + 1] - p != n || n > most_entries) return false;
  for (int64_t k = 0; k < n; ++k)
    if (int64_t{A.indices[p + k]} - A.indices[before + k] != 1) return false;
  if (!perm) return true;
  const I *first = perm + A.indptr[b], *second = first + n;
  for (int64_t k = 0; k < n; ++k)
    if (int64_t{perm[p + k]} - perm[before + k] != int64_t{second[k]} - first[k]) return false;
  return true;
}

// The runs of a pattern; empty if they are too short to be worth anything, which most patterns show soon.
template <class I>
std::vector<I> find_runs(const PatternView<I>& A, const I* perm = nullptr) {
  constexpr int64_t patience = 4096;  // rows
  std::vector<I> first;
  for (int64_t i = 0; i < A.rows; ++i) {
    if (i > 0 && continues_run(A, perm, first.back(), i)) continue;
    first.push_back(static_cast<I>(i));
    if (i >= patience && static_cast<int64_t>(first.size()) * worth_a_run > i) return {};
  }
  if (static_cast<int64_t>(first.size()) * worth_a_run >= A.rows) return {};
  first.push_back(static_cast<I>(A.rows));
  return first;
}

// f(b, begin, end) for the rows begin … end - 1 of each run, b being its first row, between the rows `from` and `to`.
template <class I, class F>
[[gnu::always_inline]] inline void for_each_run(const PatternView<I>& A, int64_t from, int64_t to, const F& f) {
  const I* run = std::upper_bound(A.runs, A.runs + A.run_count, static_cast<I>(from)) - 1;
  for (int64_t begin = from; begin < to; ++run) {
    const int64_t end = std::min<int64_t>(run[1], to);
    f(static_cast<int64_t>(run[0]), begin, end);
    begin = end;
  }
}

// The values of one entry of every row of a run, as base[i · step] for row i: n apart, or where a transpose has them.
template <class T>
struct RunValues {
  const T* base;
  int64_t step;
};

// Of entry p of row b, the first of a run of two rows or more with n entries each.
template <class T, class I>
[[gnu::always_inline]] inline RunValues<T> values_of_run(const Csr<T, I>& A, int64_t b, int64_t n, int64_t p) {
  const int64_t at = A.perm ? A.perm[p] : p, step = A.perm ? A.perm[p + n] - A.perm[p] : n;
  return {A.values + at - b * step, step};
}

// The rows begin … end - 1 of the run of row b, which has n entries a row; x and y have `width` columns. far: the
// values come from the memory. Those of a transpose lie in n places, of which the last entry's is the first to be read.
template <int n, int width, bool permuted, bool far, class T, class I>
[[gnu::always_inline]] inline void spmm_run(const Csr<T, I>& A, int64_t b, int64_t begin, int64_t end, const T* x,
                                            T* y) {
  const int64_t p = A.indptr[b];
  const T* columns[n];
  RunValues<T> values[n];
  bool even = true;  // values n apart: the rule, but for rows beside the border of a grid
  for (int k = 0; k < n; ++k) {
    columns[k] = x + (A.indices[p + k] - b) * width;
    values[k] = values_of_run(A, b, n, p + k);
    even = even && values[k].step == n;
  }
  const auto rows = [&](const auto& step_of) GOSSAMER_INLINED {
    for (int64_t i = begin; i < end; ++i) {
      Sum<T> sum[width] = {};
      if constexpr (far) prefetch_ahead(values[n - 1].base + i * step_of(n - 1));
      for (int k = 0; k < n; ++k) {
        const auto a = static_cast<Sum<T>>(values[k].base[i * step_of(k)]);
        for (int c = 0; c < width; ++c) sum[c] += a * static_cast<Sum<T>>(columns[k][i * width + c]);
      }
      for (int c = 0; c < width; ++c) y[i * width + c] = static_cast<T>(sum[c]);
    }
  };
  if (!permuted || (width == 1 && even))  // with more columns the reads of x hide that of a value
    rows([](int) GOSSAMER_INLINED { return n; });
  else if constexpr (permuted)
    rows([&](int k) GOSSAMER_INLINED { return values[k].step; });
}

// The same with one column, as a function of its own: inlined beside each other, nine of these loops are a fifth
// slower.
template <int n, bool permuted, bool far, class T, class I>
[[gnu::noinline]] void spmv_run(const Csr<T, I>& A, int64_t b, int64_t begin, int64_t end, const T* x, T* y) {
  spmm_run<n, 1, permuted, far>(A, b, begin, end, x, y);
}

// Calls f<n>() for n = 1 … most_entries.
template <int n = 1, class F>
[[gnu::always_inline]] inline void with_entries_of_run(int64_t entries, const F& f) {
  if constexpr (n <= most_entries) {
    if (entries == n) return f.template operator()<n>();
    with_entries_of_run<n + 1>(entries, f);
  }
}

// y[i, :] = Σ_p values[p] x[indices[p], :] for the rows from … to - 1, x and y with `width` columns. A row that is
// alone, and rows without entries, are left to the loop `plain(begin, end)`. More than one column must be inlined into
// the vector code of `simd`: then the sums are rounded as those of any product with so many columns.
template <int width, bool permuted, class T, class I, class F>
[[gnu::always_inline]] inline void spmm_runs(const Csr<T, I>& A, int64_t from, int64_t to, const T* x, T* y,
                                             const F& plain) {
  const bool far = is_far<T>(A.nnz);
  for_each_run(A, from, to, [&](int64_t b, int64_t begin, int64_t end) GOSSAMER_INLINED {
    const int64_t entries = A.indptr[b + 1] - A.indptr[b];
    if (end - begin < 2 || entries == 0) return plain(begin, end);
    with_entries_of_run(entries, [&]<int n>() GOSSAMER_INLINED {
      if constexpr (width == 1)
        (far ? spmv_run<n, permuted, true, T, I> : spmv_run<n, permuted, false, T, I>)(A, b, begin, end, x, y);
      else if constexpr (n % 2 == 1 && n > 1)  // inner points of bands and grids: other runs are few
        spmm_run<n, width, permuted, false>(A, b, begin, end, x, y);
      else
        plain(begin, end);
    });
  });
}

// values[p] = 0 + u[i] v[indices[p]] for the rows from … to - 1.
template <class T, class I, class F>
void sddmm_runs(const PatternView<I>& A, int64_t from, int64_t to, const T* u, const T* v, T* values, const F& plain) {
  for_each_run(A, from, to, [&](int64_t b, int64_t begin, int64_t end) {
    const int64_t entries = A.indptr[b + 1] - A.indptr[b];
    if (end - begin < 2 || entries == 0) return plain(begin, end);
    with_entries_of_run(entries, [&]<int n> {
      const T* columns[n];
      for (int k = 0; k < n; ++k) columns[k] = v + (A.indices[A.indptr[b] + k] - b);
      T* out = values + A.indptr[b] + (begin - b) * n;
      for (int64_t i = begin; i < end; ++i, out += n)
        for (int k = 0; k < n; ++k)
          out[k] = static_cast<T>(Sum<T>{0} + static_cast<Sum<T>>(u[i]) * static_cast<Sum<T>>(columns[k][i]));
    });
  });
}

}  // namespace gossamer::kernels
