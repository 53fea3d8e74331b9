// SPDX-License-Identifier: BSD-3-Clause
// L x = b for `heads` triangular matrices L on one pattern; levels.h has the sets of rows that can be solved at once.
//
//   x[i, h, :] = (b[i, h, :] - Σ_p values[p, h] x[indices[p], h, :]) / d[i, h]        p over row i, inside the triangle
//
// L: n × n; entries of the other triangle are skipped. b: (n, heads, width), rows `ldb` apart. x: (n, heads, width),
// contiguous, not b itself. O(nnz · heads · width). Each element of x has one owner, who adds from the far end of the
// row towards the diagonal: bitwise the same for every thread count. A transposed solve is a row-wise solve with Lᵀ.
#pragma once
#include <gossamer/kernels/triangular_chunks.h>
#include <gossamer/kernels/triangular_runs.h>
#include <gossamer/kernels/types.h>

namespace gossamer {

namespace kernels {

// The definition as loops, for a triangle whose diagonal is stored or unit. Tests compare the tuned kernels with it.
namespace plain {
template <class T, class I>
void solve_triangular(const Csr<T, I>& L, Triangle triangle, const T* b, int64_t ldb, int64_t width, T* x) {
  for (int64_t k = 0; k < L.rows; ++k)
    for (int64_t h = 0; h < L.heads; ++h)
      for (int64_t c = 0; c < width; ++c) {
        const int64_t i = triangle.upper ? L.rows - 1 - k : k;
        T sum = b[i * ldb + h * width + c], diagonal = 1;
        for (int64_t p = L.indptr[i]; p < L.indptr[i + 1]; ++p) {
          const int64_t j = L.indices[p];
          if (triangle.upper ? j > i : j < i) sum -= L.value(p, h) * x[(j * L.heads + h) * width + c];
          if (j == i && !triangle.unit_diagonal) diagonal = L.value(p, h);
        }
        x[(i * L.heads + h) * width + c] = sum / diagonal;
      }
}
}  // namespace plain

// What the threads of a device tell each other during a solve, in the device's memory: which rows are taken, of which
// rows, or of which 32 columns of them, x is there (n · ⌈heads · width / 32⌉ numbers), and the first row that has no
// diagonal entry or a zero there. They begin as 0, 0 and n.
struct SolveProgress {
  unsigned long long* tickets;
  int* ready;
  unsigned long long* bad;
};

// On a CUDA device: pointers are the device's. Defined in src/cuda/triangular.cu.
template <class T, class I>
[[gnu::weak]] void solve_triangular(Cuda, const Csr<T, I>& L, Triangle triangle, const T* b, int64_t ldb, int64_t width,
                                    T* x, const SolveProgress& progress);

// One launch a level, without waiting inside: order is the device's, level_ptr the host's. Worth it for levels of so
// many rows on average; launches come one after the other, and smaller levels would leave the device idle between them.
inline constexpr int64_t rows_worth_a_launch = 256;
template <class T, class I>
[[gnu::weak]] void solve_triangular(Cuda, const Csr<T, I>& L, Triangle triangle, const Levels<I>& levels, const T* b,
                                    int64_t ldb, int64_t width, T* x, unsigned long long* bad);
// level[i]: how many levels come before that of row i. bad is not used.
template <class I>
[[gnu::weak]] void find_levels(Cuda, const PatternView<I>& L, bool upper, I* level, const SolveProgress& progress);
template <class T, class I>
[[gnu::weak]] void keep_triangle(Cuda, const PatternView<I>& L, Triangle triangle, int64_t heads, const T* in, T* out);

// The first row that has no diagonal entry or a zero there; -1 if all is well.
template <Host E, class T, class I>
int64_t solve_triangular(const E& exec, const Csr<T, I>& L, Triangle triangle, const Levels<I>& levels, const T* b,
                         int64_t ldb, int64_t width, T* x) {
  constexpr int64_t worth_a_thread = 16384;
  const TriangularSolve<T, I> solve{L, triangle, b, ldb, width, x, L.rows};
  if (L.rows == 0 || L.heads * width == 0) return -1;
  const int64_t units = L.heads * ((width + 7) / 8), work = (L.nnz + L.rows) * L.heads * width;
  const int64_t threads = std::clamp<int64_t>(work / worth_a_thread, 1, exec.threads());
  int64_t count = L.rows;  // of levels; L.rows: no better than one row after the other
  if (levels.order && units < threads) count = levels.count(L.rows);
  const auto run = [&]<bool upper> {
    if (units < threads && work / count >= 2 * worth_a_thread)
      return solve.template by_level<upper>(exec, levels, count, worth_a_thread);
    if (L.heads * width == 1 && L.run_count > 0) return solve_by_runs<upper>(solve);
    if (threads > 1 && L.heads * width == 1 && seldom_needs_neighbours<upper>(L))
      return TriangularChunks<upper, T, I>(solve).run(exec, threads);
    const int64_t parts = std::min(threads, units);
    exec.parallel_for(parts,
                      [&](int64_t k) { solve.template panels<upper>(units * k / parts, units * (k + 1) / parts); });
  };
  if (triangle.upper)
    run.template operator()<true>();
  else
    run.template operator()<false>();
  return solve.bad == L.rows ? -1 : solve.bad.load();
}

// out = in on the triangle, 0 elsewhere and, with a unit diagonal, on the diagonal. in, out: (nnz, heads).
template <Host E, class T, class I>
void keep_triangle(const E& exec, const PatternView<I>& L, Triangle triangle, int64_t heads, const T* in, T* out) {
  for_each_row_range(exec, L, heads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t p = L.indptr[i]; p < L.indptr[i + 1]; ++p) {
        const int64_t j = L.indices[p];
        const bool kept = j == i ? !triangle.unit_diagonal : triangle.upper ? j > i : j < i;
        for (int64_t h = 0; h < heads; ++h) out[p * heads + h] = kept ? in[p * heads + h] : T(0.0f);
      }
  });
}

// Under Pool, compiled once: src/cpu/triangular.cpp.
#define GOSSAMER_SOLVE_TRIANGULAR(T, I, ...)                                                                         \
  __VA_ARGS__ template int64_t solve_triangular(const Pool&, const Csr<T, I>&, Triangle, const Levels<I>&, const T*, \
                                                int64_t, int64_t, T*);
#define GOSSAMER_KEEP_TRIANGLE(T, I, ...) \
  __VA_ARGS__ template void keep_triangle(const Pool&, const PatternView<I>&, Triangle, int64_t, const T*, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_SOLVE_TRIANGULAR, extern)
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_KEEP_TRIANGLE, extern)
#endif

}  // namespace kernels
}  // namespace gossamer
