// SPDX-License-Identifier: BSD-3-Clause
// Dense triangles, in halves:
//
//   X ← X L⁻ᵀ    [X1 X2] [L1; L2 L3]⁻ᵀ:  X1 ← X1 L1⁻ᵀ,  X2 ← (X2 - X1 L2ᵀ) L3⁻ᵀ
//   X ← X L⁻¹    [X1 X2] [L1; L2 L3]⁻¹:  X2 ← X2 L3⁻¹,  X1 ← (X1 - X2 L2) L1⁻¹
//   A = L Lᵀ     of the columns of a trapezoid, its first half H, then the rest minus H Hᵀ, then the second half
//
// L: n × n, its lower triangle is read. O(m n²), nearly all of it in `subtract_product`, with whose tiles the result is
// the same for every thread count.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <gossamer/kernels/dense_product.h>

namespace gossamer::kernels {

namespace plain {
template <class T>
void solve_right(Block<T> X, Block<const T> L, bool transposed) {
  const int64_t n = X.columns;
  for (int64_t i = 0; i < X.rows; ++i)
    for (int64_t c = 0; c < n; ++c) {
      const int64_t j = transposed ? c : n - 1 - c;
      for (int64_t d = 0; d < c; ++d) {
        const int64_t k = transposed ? d : n - 1 - d;
        X(i, j) -= X(i, k) * (transposed ? L(j, k) : L(k, j));
      }
      X(i, j) /= L(j, j);
    }
}
}  // namespace plain

inline constexpr int64_t narrow = 16;  // columns that are solved one after the other

// `lanes · vectors` rows of X, contiguous in a column: those of a column stay in registers while the earlier ones are
// subtracted.
template <int lanes, int vectors, bool transposed, class T>
[[gnu::always_inline]] inline void solve_strip(T* x, int64_t right, int64_t n, const Block<const T>& L) {
  for (int64_t c = 0; c < n; ++c) {
    const int64_t j = transposed ? c : n - 1 - c;
    Vec<T, lanes> sum[vectors], other;
    for (int v = 0; v < vectors; ++v) load<lanes>(x + j * right + v * lanes, sum[v]);
    for (int64_t d = 0; d < c; ++d) {
      const int64_t k = transposed ? d : n - 1 - d;
      const T l = transposed ? L(j, k) : L(k, j);
      for (int v = 0; v < vectors; ++v) {
        load<lanes>(x + k * right + v * lanes, other);
        sum[v] -= other * l;
      }
    }
    for (int v = 0; v < vectors; ++v) {
      sum[v] /= L(j, j);
      store<lanes>(sum[v], x + j * right + v * lanes);
    }
  }
}

// At most `narrow` columns.
template <bool transposed, class T>
void solve_narrow(const Block<T>& X, const Block<const T>& L) {
  simd([&]<int bytes> {
    constexpr int lanes = bytes / static_cast<int>(sizeof(T));
    int64_t i = 0;
    for (; i + 4 * lanes <= X.rows; i += 4 * lanes)
      solve_strip<lanes, 4, transposed>(X.data + i, X.right, X.columns, L);
    for (; i + lanes <= X.rows; i += lanes) solve_strip<lanes, 1, transposed>(X.data + i, X.right, X.columns, L);
    for (; i < X.rows; ++i) solve_strip<1, 1, transposed>(X.data + i, X.right, X.columns, L);
  });
}

// X ← X L⁻ᵀ if transposed, else X L⁻¹. The rows of X are contiguous in its columns: X.down = 1.
template <Host E, class T>
void solve_right(const E& exec, Block<T> X, Block<const T> L, bool transposed) {
  const int64_t n = X.columns;
  if (n <= narrow) return transposed ? solve_narrow<true>(X, L) : solve_narrow<false>(X, L);
  const int64_t h = (n / 2 + narrow - 1) / narrow * narrow, rest = n - h;
  const Block<T> X1 = X.part(0, 0, X.rows, h), X2 = X.part(0, h, X.rows, rest);
  const Block<const T> L2 = L.part(h, 0, rest, h);
  if (transposed) {
    solve_right(exec, X1, L.part(0, 0, h, h), true);
    subtract_product(exec, X2, Block<const T>(X1), L2);
    solve_right(exec, X2, L.part(h, h, rest, rest), true);
  } else {
    solve_right(exec, X2, L.part(h, h, rest, rest), false);
    subtract_product(exec, X1, Block<const T>(X2), L2.transposed());
    solve_right(exec, X1, L.part(0, 0, h, h), false);
  }
}

// The lower trapezoid A of m ≥ n rows becomes L of its n columns: those of L Lᵀ, and below them A L⁻ᵀ. Gives the first
// column whose pivot is not positive, at which it stops, or -1. Above the diagonal, A is neither read nor kept.
template <Host E, class T>
int64_t cholesky(const E& exec, Block<T> A) {
  const int64_t n = A.columns, m = A.rows;
  if (n <= narrow) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < j; ++k)
        for (int64_t i = j; i < n; ++i) A(i, j) -= A(i, k) * A(j, k);
      if (!(A(j, j) > 0)) return j;
      A(j, j) = std::sqrt(A(j, j));
      for (int64_t i = j + 1; i < n; ++i) A(i, j) /= A(j, j);
    }
    solve_narrow<true>(A.part(n, 0, m - n, n), Block<const T>(A.part(0, 0, n, n)));
    return -1;
  }
  const int64_t h = (n / 2 + narrow - 1) / narrow * narrow;
  const int64_t first = cholesky(exec, A.part(0, 0, m, h));
  if (first >= 0) return first;
  const Block<const T> below = A.part(h, 0, m - h, h);
  subtract_product(exec, A.part(h, h, m - h, n - h), below, below.part(0, 0, n - h, h), /*lower=*/true);
  const int64_t second = cholesky(exec, A.part(h, h, m - h, n - h));
  return second >= 0 ? h + second : -1;
}

}  // namespace gossamer::kernels
