// SPDX-License-Identifier: BSD-3-Clause
// Rows of a triangular solve, for triangular.h: one row from those it needs, and the orders in which rows are taken.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/levels.h>
#include <gossamer/kernels/simd.h>

namespace gossamer {

// Which entries of a square matrix are meant. With a unit diagonal the stored one is not read: it counts as 1.
struct Triangle {
  bool upper = false, unit_diagonal = false;
};

namespace kernels {

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

}  // namespace kernels
}  // namespace gossamer
