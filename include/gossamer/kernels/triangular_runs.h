// SPDX-License-Identifier: BSD-3-Clause
// L x = b for one vector along the runs of a grid or a band (runs.h), whose rows need the same neighbours each:
//
//   x[i] = (b[i] - Σ_k a[k][i step[k]] x[i + offset[k]]) / d[i step]        k over the m entries inside the triangle
//
// No index is read inside a run. Rows are summed as in triangular.h, from the far end towards the diagonal, and the
// neighbouring row's x is taken from a register: the same bits.
#pragma once
#include <gossamer/kernels/runs.h>
#include <gossamer/kernels/triangular_rows.h>

namespace gossamer::kernels {

constexpr int most_before_diagonal = 4;  // entries inside the triangle: half of a square of neighbours

// The entries of the rows of one run that a solve reads, the farthest first, then the diagonal.
template <int m, class T>
struct TriangularRun {
  const T* x[m + 1];
  RunValues<T> values[m + 1];
  T value(int k, int64_t i) const { return values[k].base[i * values[k].step]; }
};

// The rows i = first, first + direction, … of a run, `count` of them. chained: the last entry before the diagonal is
// the neighbour's. False if a row has a zero to divide by.
template <int m, bool chained, class T>
[[gnu::always_inline]] inline bool solve_run(const TriangularRun<m, T>& run, int64_t first, int64_t count,
                                             int64_t direction, const T* b, int64_t ldb, T* x) {
  T last = chained ? x[first - direction] : T{0};
  bool usable = true;
  for (int64_t r = 0, i = first; r < count; ++r, i += direction) {
    T sum = b[i * ldb];
    prefetch_ahead(&run.values[m - 1].base[i * run.values[m - 1].step], direction);
    for (int k = 0; k < m - chained; ++k) sum -= run.value(k, i) * run.x[k][i];
    if constexpr (chained) sum -= run.value(m - 1, i) * last;
    const T d = run.value(m, i);
    usable = usable && d != 0;
    x[i] = last = has_reciprocal(d) ? sum * (1 / d) : sum / d;
  }
  return usable;
}

// The rows b … end - 1, which are a run: `place` is that of the diagonal among the entries of a row, m others are
// needed.
template <int m, bool upper, class T, class I>
[[gnu::always_inline]] inline bool solve_run(const TriangularSolve<T, I>& solve, int64_t b, int64_t end,
                                             int64_t place) {
  static constexpr T one = 1;
  const Csr<T, I>& L = solve.L;
  const int64_t p = L.indptr[b], n = L.indptr[b + 1] - p, direction = upper ? -1 : 1;
  TriangularRun<m, T> run;
  for (int k = 0; k <= m; ++k) {
    const int64_t at = p + place - direction * (m - k);
    run.values[k] = values_of_run(L, b, n, at);
    run.x[k] = solve.x + (L.indices[at] - b);
  }
  if (solve.triangle.unit_diagonal) run.values[m] = {&one, 0};
  const int64_t first = upper ? end - 1 : b;
  if (L.indices[p + place - direction] == b - direction)
    return solve_run<m, true>(run, first, end - b, direction, solve.b, solve.ldb, solve.x);
  return solve_run<m, false>(run, first, end - b, direction, solve.b, solve.ldb, solve.x);
}

// Rows begin … end - 1 by their indices: what is no run of a grid or a band, and where a pivot is missing.
template <bool upper, class T, class I>
[[gnu::always_inline]] inline void solve_rows_apart(const TriangularSolve<T, I>& solve, int64_t begin, int64_t end) {
  T last = 0;
  for (int64_t k = begin; k < end; ++k) {
    const int64_t i = upper ? begin + end - 1 - k : k;
    if (!solve_element<upper, false>(solve.L, i, 0, solve.triangle.unit_diagonal, solve.b + i * solve.ldb, solve.x, 1,
                                     last)) [[unlikely]]
      solve.report(i);
  }
}

// All rows of L, one run after the other. heads · width = 1.
template <bool upper, class T, class I>
void solve_by_runs(const TriangularSolve<T, I>& solve) {
  const Csr<T, I>& L = solve.L;
  simd([&]<int>() GOSSAMER_INLINED {
    for (int64_t k = 0; k < L.run_count; ++k) {
      const I* run = L.runs + (upper ? L.run_count - 1 - k : k);
      const int64_t b = run[0], end = run[1], n = L.indptr[b + 1] - L.indptr[b];
      const int64_t place = place_of(L.indices + L.indptr[b], 0, n, static_cast<I>(b));
      const bool diagonal = place < n && L.indices[L.indptr[b] + place] == b;
      const int64_t needed = diagonal && end - b > 1 ? (upper ? n - 1 - place : place) : 0;
      bool done = false;
      unrolled<most_before_diagonal>([&]<int m>() GOSSAMER_INLINED {
        if (needed == m + 1) done = solve_run<m + 1, upper>(solve, b, end, place);
      });
      if (!done) solve_rows_apart<upper>(solve, b, end);  // again, if a pivot is zero: this says where
    }
  });
}

}  // namespace gossamer::kernels
