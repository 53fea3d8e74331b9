// SPDX-License-Identifier: BSD-3-Clause
// L x = b for `heads` triangular matrices L on one pattern; levels.h has the sets of rows that can be solved at once.
//
//   x[i, h, :] = (b[i, h, :] - Σ_p values[p, h] x[indices[p], h, :]) / d[i, h]        p over row i, inside the triangle
//
// L: n × n; entries of the other triangle are skipped. b: (n, heads, width), rows `ldb` apart. x: (n, heads, width),
// contiguous, not b itself. O(nnz · heads · width). Each element of x has one owner, who adds from the far end of the
// row towards the diagonal: bitwise the same for every thread count. A transposed solve is a row-wise solve with Lᵀ.
#pragma once
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/levels.h>
#include <gossamer/kernels/simd.h>
#include <gossamer/kernels/types.h>

namespace gossamer {

// Which entries of a square matrix are meant. With a unit diagonal the stored one is not read: it counts as 1.
struct Triangle {
  bool upper = false, unit_diagonal = false;
};

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

// Division by d as a product with 1 / d, which does not wait for the sum: a chain of rows would notice. Where the
// reciprocal would overflow or lose digits, we divide.
template <class T>
[[gnu::always_inline]] inline bool has_reciprocal(T d) {
  constexpr T least = std::numeric_limits<T>::min();
  return std::abs(d) >= least && std::abs(d) <= 1 / least;
}

// The entries of row i inside the triangle, from the far end to the diagonal: p = first, first + step, … stop.
template <bool upper, class I>
struct RowWalk {
  static constexpr int64_t step = upper ? -1 : 1;
  int64_t i, first, stop;
  RowWalk(const PatternView<I>& L, int64_t row)
      : i(row),
        first(upper ? L.indptr[row + 1] - 1 : L.indptr[row]),
        stop(upper ? L.indptr[row] - 1 : L.indptr[row + 1]) {}
  static bool before(int64_t j, int64_t row) { return upper ? j > row : j < row; }
};

// One element of x, one head and one column; `last` is x of the neighbouring row if `chained`: taken from a register,
// it saves a chain of rows the way through memory. False if the row has no diagonal to divide by.
template <bool upper, bool chained, class T, class I>
[[gnu::always_inline]] inline bool solve_element(const Csr<T, I>& L, int64_t i, int64_t h, bool unit, const T* b, T* x,
                                                 int64_t ldx, T& last) {
  const RowWalk<upper, I> row(L, i);
  const int64_t neighbour = i - row.step;
  T sum = *b;
  int64_t p = row.first;
  for (; p != row.stop && row.before(L.indices[p], chained ? neighbour : i); p += row.step)
    sum -= L.value(p, h) * x[L.indices[p] * ldx];
  if (chained && p != row.stop && L.indices[p] == neighbour) {
    sum -= L.value(p, h) * last;
    p += row.step;
  }
  bool usable = true;
  if (!unit) {
    usable = p != row.stop && L.indices[p] == i;
    const T d = usable ? L.value(p, h) : T{0};
    usable = usable && d != 0;
    sum = has_reciprocal(d) ? sum * (1 / d) : sum / d;
  }
  x[i * ldx] = last = sum;
  return usable;
}

// `vectors` registers of columns of one row of x, from entries first … stop; b, x point at their first column.
template <int lanes, int vectors, bool upper, class T, class I>
[[gnu::always_inline]] inline void solve_tile(const Csr<T, I>& L, const RowWalk<upper, I>& row, int64_t stop, int64_t h,
                                              T d, const T* b, T* x, int64_t ldx) {
  Vec<T, lanes> sum[vectors], other;
  for (int k = 0; k < vectors; ++k) load<lanes>(b + k * lanes, sum[k]);
  for (int64_t p = row.first; p != stop; p += row.step) {
    const T a = L.value(p, h);
    const T* from = x + L.indices[p] * ldx;
    for (int k = 0; k < vectors; ++k) {
      load<lanes>(from + k * lanes, other);
      sum[k] -= a * other;
    }
  }
  for (int k = 0; k < vectors; ++k) {
    if (has_reciprocal(d)) [[likely]]
      sum[k] *= 1 / d;
    else
      sum[k] /= d;
    store<lanes>(sum[k], x + row.i * ldx + k * lanes);
  }
}

// `width` columns of one row of x, at least `lanes`; a remainder is covered by a last tile that overlaps its neighbour.
template <int lanes, bool upper, class T, class I>
[[gnu::always_inline]] inline bool solve_row(const Csr<T, I>& L, int64_t i, int64_t h, bool unit, const T* b, T* x,
                                             int64_t ldx, int64_t width) {
  const RowWalk<upper, I> row(L, i);
  int64_t stop = row.first;
  while (stop != row.stop && row.before(L.indices[stop], i)) stop += row.step;
  const bool usable = unit || (stop != row.stop && L.indices[stop] == i && L.value(stop, h) != 0);
  const T d = unit || !usable ? T{1} : L.value(stop, h);
  int64_t c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) solve_tile<lanes, 4>(L, row, stop, h, d, b + c, x + c, ldx);
  for (; c + lanes <= width; c += lanes) solve_tile<lanes, 1>(L, row, stop, h, d, b + c, x + c, ldx);
  if (c < width) c = width - lanes, solve_tile<lanes, 1>(L, row, stop, h, d, b + c, x + c, ldx);
  return usable;
}

// What a solve reads and writes; `bad` is the first row without a usable diagonal, n if there is none.
template <class T, class I>
struct TriangularSolve {
  Csr<T, I> L;
  Triangle triangle;
  const T* b;
  int64_t ldb, width;
  T* x;
  mutable std::atomic<int64_t> bad;

  int64_t ldx() const { return L.heads * width; }
  void report(int64_t row) const {
    for (int64_t seen = bad; row < seen && !bad.compare_exchange_weak(seen, row);) continue;
  }

  // Columns c … end of head h for the rows row_of(0 … count - 1), which must come after all rows they need.
  template <bool upper, bool chained, class Row>
  void rows(int64_t count, const Row& row_of, int64_t h, int64_t c, int64_t end) const {
    simd([&]<int bytes> {
      int64_t first_bad = L.rows;
      const T* from = b + h * width + c;
      T* to = x + h * width + c;
      const bool unit = triangle.unit_diagonal;
      if (end - c == 1) {
        T last = 0;
        for (int64_t k = 0; k < count; ++k) {
          const int64_t i = row_of(k);
          if (!solve_element<upper, chained>(L, i, h, unit, from + i * ldb, to, ldx(), last)) [[unlikely]]
            first_bad = std::min(first_bad, i);
        }
      } else {
        with_lanes<bytes / sizeof(T)>(end - c, [&]<int lanes> {
          for (int64_t k = 0; k < count; ++k) {
            const int64_t i = row_of(k);
            if (!solve_row<lanes, upper>(L, i, h, unit, from + i * ldb, to, ldx(), end - c)) [[unlikely]]
              first_bad = std::min(first_bad, i);
          }
        });
      }
      report(first_bad);
    });
  }

  // All rows in order, for the panels (8 columns of a head each) begin … end - 1.
  template <bool upper>
  void panels(int64_t begin, int64_t end) const {
    const int64_t n = L.rows, in_head = (width + 7) / 8;
    for (int64_t k = begin; k < end;) {
      const int64_t h = k / in_head, stop = std::min(end, (h + 1) * in_head);
      rows<upper, true>(
          n, [n](int64_t r) { return upper ? n - 1 - r : r; }, h, (k - h * in_head) * 8,
          std::min((stop - h * in_head) * 8, width));
      k = stop;
    }
  }

  // All heads and columns of one level after the other, each level split between the threads if it is worth it.
  template <bool upper, class E>
  void by_level(const E& exec, const Levels<I>& levels, int64_t count, int64_t worth_a_thread) const {
    const int64_t cost = std::max<int64_t>(1, (L.nnz + L.rows) / L.rows * ldx());
    for (int64_t step = 0; step < count; ++step) {
      const int64_t l = levels.backward ? count - 1 - step : step;
      const int64_t begin = levels.level_ptr[l], size = levels.level_ptr[l + 1] - begin;
      const int64_t parts = std::clamp<int64_t>(size * cost / worth_a_thread, 1, exec.threads());
      const auto part = [&](int64_t k) {
        const I* order = levels.order + begin + size * k / parts;
        const int64_t length = size * (k + 1) / parts - size * k / parts;
        for (int64_t h = 0; h < L.heads; ++h)
          rows<upper, false>(length, [order](int64_t r) -> int64_t { return order[r]; }, h, 0, width);
      };
      if (parts == 1)
        part(0);
      else
        exec.parallel_for(parts, part);
    }
  }
};

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
