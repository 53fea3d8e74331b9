// SPDX-License-Identifier: BSD-3-Clause
// A x = b with the factor of multifrontal.h, rows numbered as they are eliminated:
//
//   L y = b     front by front:              y_J = L_J⁻¹ b_J,   b_R ← b_R - L_R y_J
//   Lᵀ x = y    from the last to the first:  x_J = L_J⁻ᵀ (y_J - L_Rᵀ x_R)
//
// One right-hand side reads L as columns; several are solved side by side as rows Xᵀ, by products of dense blocks.
// Panels of `panel` right-hand sides run at once, each on one thread. O(size of L · columns).
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <gossamer/kernels/multifrontal.h>

namespace gossamer::kernels {

// y ← y - a x
template <int lanes, class T>
[[gnu::always_inline]] inline void subtract_multiple(int64_t n, T a, const T* x, T* y) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vec<T, lanes> to, from;
    load<lanes>(y + i, to);
    load<lanes>(x + i, from);
    to -= from * a;
    store<lanes>(to, y + i);
  }
  for (; i < n; ++i) y[i] -= a * x[i];
}

template <int lanes, class T>
[[gnu::always_inline]] inline T dot_of(int64_t n, const T* x, const T* y) {
  Vec<T, lanes> sums[2] = {}, a, b;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes)
    for (int k = 0; k < 2; ++k) {
      load<lanes>(x + i + k * lanes, a);
      load<lanes>(y + i + k * lanes, b);
      sums[k] += a * b;
    }
  sums[0] += sums[1];
  T sum = sum_lanes<lanes, T>(sums[0]);
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// x: one right-hand side, and then the solution. w: room for the rows of a front.
template <class T>
void solve_vector(const AssemblyTree& tree, const T* L, T* x, T* w) {
  simd([&]<int bytes> {
    constexpr int lanes = bytes / static_cast<int>(sizeof(T));
    for (int64_t s = 0; s < tree.count(); ++s) {
      const int64_t n = tree.columns(s), height = tree.height(s);
      const int32_t* rows = tree.rows.data() + tree.row_ptr[s];
      const T* l = L + tree.value_ptr[s];
      T* y = x + tree.first[s];
      std::fill(w, w + height, T{0});
      for (int64_t c = 0; c < n; ++c, l += height) {
        y[c] = (y[c] + w[c]) / l[c];
        subtract_multiple<lanes>(height - c - 1, y[c], l + c + 1, w + c + 1);
      }
      for (int64_t r = n; r < height; ++r) x[rows[r]] += w[r];
    }
    for (int64_t s = tree.count(); s-- > 0;) {
      const int64_t n = tree.columns(s), height = tree.height(s);
      const int32_t* rows = tree.rows.data() + tree.row_ptr[s];
      const T* l = L + tree.value_ptr[s];
      for (int64_t r = 0; r < height; ++r) w[r] = x[rows[r]];
      for (int64_t c = n; c-- > 0;)
        w[c] = (w[c] - dot_of<lanes>(height - c - 1, l + c * height + c + 1, w + c + 1)) / l[c * height + c];
      std::copy(w, w + n, x + tree.first[s]);
    }
  });
}

// The same for `width` right-hand sides, X: width × n by columns. w: room for `width` times the rows of a front.
template <class T>
void solve_panel(const AssemblyTree& tree, const T* L, int64_t width, T* x, T* w) {
  const Serial serial;
  for (int64_t s = 0; s < tree.count(); ++s) {
    const Front<const T> F(tree, s, L);
    const int32_t* rows = tree.rows.data() + tree.row_ptr[s] + F.all.columns;
    const Block<T> Y = by_columns(x + tree.first[s] * width, width, F.all.columns, width);
    const Block<T> W = by_columns(w, width, F.R.rows, width);
    solve_right(serial, Y, F.J, /*transposed=*/true);
    std::fill(w, w + width * W.columns, T{0});
    subtract_product(serial, W, Block<const T>(Y), F.R);
    for (int64_t r = 0; r < W.columns; ++r)
      for (int64_t k = 0; k < width; ++k) x[rows[r] * width + k] += W(k, r);
  }
  for (int64_t s = tree.count(); s-- > 0;) {
    const Front<const T> F(tree, s, L);
    const int32_t* rows = tree.rows.data() + tree.row_ptr[s] + F.all.columns;
    const Block<T> Y = by_columns(x + tree.first[s] * width, width, F.all.columns, width);
    const Block<T> W = by_columns(w, width, F.R.rows, width);
    for (int64_t r = 0; r < W.columns; ++r) std::copy_n(x + rows[r] * width, width, w + r * width);
    subtract_product(serial, Y, Block<const T>(W), F.R.transposed());
    solve_right(serial, Y, F.J, /*transposed=*/false);
  }
}

// x ← A⁻¹ x, n × columns, rows numbered as in the matrix: one column after the other or, if by_rows, one row after the
// other, which several columns prefer.
template <Host E, class T>
void solve_cholesky(const E& exec, const AssemblyTree& tree, const T* L, T* x, int64_t columns, bool by_rows = false) {
  constexpr int64_t panel = 64, few = 3;
  const int64_t n = tree.n;
  int64_t highest = 0;
  for (int64_t s = 0; s < tree.count(); ++s) highest = std::max(highest, tree.height(s));
  const int64_t row_step = by_rows ? columns : 1, column_step = by_rows ? 1 : n;
  const int64_t width_of_each = columns <= few ? 1 : std::min(panel, columns);
  const auto part = [&](int64_t k) {
    const int64_t first = k * width_of_each, width = std::min(width_of_each, columns - first);
    const auto X = std::make_unique_for_overwrite<T[]>(n * width),
               room = std::make_unique_for_overwrite<T[]>(highest * width);
    T* own = x + first * column_step;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t c = 0; c < width; ++c) X[tree.rank[i] * width + c] = own[i * row_step + c * column_step];
    if (width == 1)
      solve_vector(tree, L, X.get(), room.get());
    else
      solve_panel(tree, L, width, X.get(), room.get());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t c = 0; c < width; ++c) own[i * row_step + c * column_step] = X[tree.rank[i] * width + c];
  };
  const int64_t parts = (columns + width_of_each - 1) / width_of_each;
  if (parts > 1 && exec.threads() > 1) return exec.parallel_for(parts, part);
  for (int64_t k = 0; k < parts; ++k) part(k);
}

// Under Pool, compiled once: src/cpu/multifrontal.cpp.
#define GOSSAMER_MULTIFRONTAL_SOLVE(T, ...) \
  __VA_ARGS__ template void solve_cholesky(const Pool&, const AssemblyTree&, const T*, T*, int64_t, bool);
#ifdef GOSSAMER_COMPILED
GOSSAMER_MULTIFRONTAL_SOLVE(double, extern)
#endif

}  // namespace gossamer::kernels
