// SPDX-License-Identifier: BSD-3-Clause
// Derivatives of the Cholesky factor L of multifrontal.h in a symmetric direction M of A; a prime is such a derivative,
// Φ takes the lower triangle and half of the diagonal, F' is M on the front plus Σ_children U':
//
//   L_J' = L_J Φ(L_J⁻¹ F'_JJ L_J⁻ᵀ)        L_R' = (F'_RJ - L_R L_J'ᵀ) L_J⁻ᵀ
//   U' = (Σ_children U' on (R, R)) - L_R' L_Rᵀ - L_R L_R'ᵀ
//
// A few times the work of the factor, the same bits for every thread count.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include <gossamer/kernels/multifrontal.h>

namespace gossamer::kernels {

// A dense matrix by columns that owns its numbers, all of them 0.
template <class T>
struct Room {
  std::unique_ptr<T[]> numbers;
  Block<T> block;

  Room(int64_t rows, int64_t columns)
      : numbers(new T[rows * columns]()), block(by_columns(numbers.get(), rows, columns, rows)) {}
};

// Its lower triangle and half of its diagonal, 0 above.
template <class T>
void keep_half(const Block<T>& A) {
  for (int64_t c = 0; c < A.columns; ++c) {
    A(c, c) /= 2;
    for (int64_t r = 0; r < c; ++r) A(r, c) = 0;
  }
}

template <class T>
Room<T> lower_of(const Block<const T>& A) {
  Room<T> lower(A.rows, A.columns);
  for (int64_t c = 0; c < A.columns; ++c)
    for (int64_t r = c; r < A.rows; ++r) lower.block(r, c) = A(r, c);
  return lower;
}

// X ← the transpose of X, which is square.
template <class T>
void turn(const Block<T>& X) {
  for (int64_t c = 0; c < X.columns; ++c)
    for (int64_t r = 0; r < c; ++r) std::swap(X(r, c), X(c, r));
}

// X comes as M and becomes L'.
template <Host E, class T>
void cholesky_tangent_front(const E& exec, const AssemblyTree& tree, int64_t s, const T* L, T* X, Ascent<T>& below) {
  const Front<const T> F(tree, s, L);
  const Front<T> G(tree, s, X);
  const Block<T> U = below.gathered(s, G);
  const int64_t n = F.J.rows;
  mirror(G.J);
  solve_right(exec, G.J, F.J, /*transposed=*/true);
  turn(G.J);
  solve_right(exec, G.J, F.J, /*transposed=*/true);  // L_J⁻¹ F'_JJ L_J⁻ᵀ, which is symmetric
  keep_half(G.J);
  Room<T> lower = lower_of(F.J), product(n, n);
  for (T* number = lower.numbers.get(); number != lower.numbers.get() + n * n; ++number) *number = -*number;
  subtract_product(exec, product.block, Block<const T>(lower.block), Block<const T>(G.J.transposed()));
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < n; ++r) G.J(r, c) = r >= c ? product.block(r, c) : T{0};
  subtract_product(exec, G.R, F.R, Block<const T>(G.J));
  solve_right(exec, G.R, F.J, /*transposed=*/true);
  subtract_product(exec, U, Block<const T>(G.R), F.R, /*lower=*/true);
  subtract_product(exec, U, F.R, Block<const T>(G.R), /*lower=*/true);
}

// X: as L, comes as M, of which one entry of two mirror images is stored, and becomes L', 0 above the diagonals.
template <Host E, class T>
void cholesky_tangent(const E& exec, const AssemblyTree& tree, const T* L, T* X) {
  Ascent<T> below(tree);
  for_each_front_up(exec, tree, [&](const auto& on, int64_t s) -> int64_t {
    cholesky_tangent_front(on, tree, s, L, X, below);
    return -1;
  });
}

// values: M, symmetric, in the order of the pattern of the tree. X: tree.size() numbers, L' on and below the diagonals.
template <Host E, class T>
void cholesky_tangent(const E& exec, const AssemblyTree& tree, const T* L, const T* values, T* X) {
  scatter(tree, values, X);
  cholesky_tangent(exec, tree, L, X);
}

// Under Pool, compiled once: src/cpu/multifrontal.cpp.
#define GOSSAMER_CHOLESKY_TANGENT(T, ...)                                                     \
  __VA_ARGS__ template void cholesky_tangent(const Pool&, const AssemblyTree&, const T*, T*); \
  __VA_ARGS__ template void cholesky_tangent(const Pool&, const AssemblyTree&, const T*, const T*, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_CHOLESKY_TANGENT(double, extern)
#endif

}  // namespace gossamer::kernels
