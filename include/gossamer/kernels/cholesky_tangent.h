// SPDX-License-Identifier: BSD-3-Clause
// Derivatives of the Cholesky factor L of multifrontal.h in a symmetric direction M of A; a prime is such a derivative,
// Φ takes the lower triangle and half of the diagonal, F' is M on the front plus Σ_children U':
//
//   up      L_J' = L_J Φ(L_J⁻¹ F'_JJ L_J⁻ᵀ)      L_R' = (F'_RJ - L_R L_J'ᵀ) L_J⁻ᵀ
//           U' = (Σ_children U' on (R, R)) - L_R' L_Rᵀ - L_R L_R'ᵀ
//   down    that of the reverse mode (selected_inverse.h), Y fixed where it begins:
//           Y_R' = -S'_RR L_R - S_RR L_R'        S'_RJ = (Y_R' - S_RJ L_J') L_J⁻¹
//           Y_J' = -S'_RJᵀ L_R - S_RJᵀ L_R'      S'_JJ = L_J⁻ᵀ (sym(L_J'ᵀ Y_J + L_Jᵀ Y_J') - N - Nᵀ) L_J⁻¹,  N = L_J'ᵀ
//           S_JJ L_J
//
// The way up is the derivative of L; both are the second derivative, along M, of the scalar whose gradient in L is 2 Y.
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

// X comes as L' and becomes S'. S: of the same Y by cholesky_gradient.
template <Host E, class T>
void second_front(const E& exec, const AssemblyTree& tree, int64_t s, const T* L, const T* Y, const T* S, T* X,
                  Descent<T>& above_S, Descent<T>& above_X) {
  const Front<const T> F(tree, s, L), Z(tree, s, S), given(tree, s, Y);
  const Front<T> D(tree, s, X);
  const int64_t n = F.J.rows, m = F.R.rows;
  const std::unique_ptr<T[]> S_RR = above_S.taken(s), X_RR = above_X.taken(s);
  const auto square = [m](const T* data) { return by_columns(data, m, m, m); };
  const auto fixed = [](const Block<T>& block) { return Block<const T>(block); };
  const Room<T> lower = lower_of(F.J), lower_tangent = lower_of(fixed(D.J)), Y_J = lower_of(given.J);
  const Room<T> Y_R(m, n), Y_J_tangent(n, n), Q(n, n), half(n, n);
  const Block<const T> l = lower.block, l_tangent = lower_tangent.block;
  subtract_product(exec, Y_R.block, square(X_RR.get()), F.R.transposed());
  subtract_product(exec, Y_R.block, square(S_RR.get()), fixed(D.R.transposed()));
  subtract_product(exec, Y_R.block, Z.R, l_tangent.transposed());
  solve_right(exec, Y_R.block, F.J, /*transposed=*/false);  // S'_RJ
  subtract_product(exec, Y_J.block, Z.R.transposed(), F.R.transposed(), /*lower=*/true);
  subtract_product(exec, Y_J_tangent.block, fixed(Y_R.block.transposed()), F.R.transposed(), /*lower=*/true);
  subtract_product(exec, Y_J_tangent.block, Z.R.transposed(), fixed(D.R.transposed()), /*lower=*/true);
  for (const Block<T>& each : {Y_J.block, Y_J_tangent.block})
    for (int64_t c = 0; c < n; ++c) std::fill_n(&each(0, c), c, T{0});
  subtract_product(exec, Q.block, l_tangent.transposed(), fixed(Y_J.block.transposed()), /*lower=*/true);
  subtract_product(exec, Q.block, l.transposed(), fixed(Y_J_tangent.block.transposed()), /*lower=*/true);
  mirror(Q.block);                                                               // minus what is wanted, so far
  subtract_product(exec, half.block, l_tangent.transposed(), Z.J.transposed());  // -L_J'ᵀ S_JJ
  for (int64_t c = 0; c < n; ++c) std::fill_n(&D.J(0, c), n, T{0});
  subtract_product(exec, D.J, fixed(half.block), l.transposed());  // N
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < n; ++r) half.block(r, c) = -Q.block(r, c) - D.J(r, c) - D.J(c, r);
  solve_right(exec, half.block, F.J, /*transposed=*/false);
  turn(half.block);
  solve_right(exec, half.block, F.J, /*transposed=*/false);
  for (int64_t c = 0; c < n; ++c) {
    for (int64_t r = 0; r < n; ++r) D.J(r, c) = half.block(std::max(r, c), std::min(r, c));
    std::copy_n(Y_R.block.data + c * m, m, D.R.data + c * D.R.right);
  }
  above_S.pass_on(s, Z, S_RR.get());
  above_X.pass_on(s, Front<const T>(tree, s, X), X_RR.get());
}

// Y: half of the gradient in L; S: what cholesky_gradient made of it; values: M. X: tree.size() numbers, the derivative
// of S, the triangles of its fronts whole.
template <Host E, class T>
void cholesky_second(const E& exec, const AssemblyTree& tree, const T* L, const T* Y, const T* S, const T* values,
                     T* X) {
  cholesky_tangent(exec, tree, L, values, X);
  Descent<T> above_S(tree), above_X(tree);
  for_each_front_down(exec, tree,
                      [&](const auto& on, int64_t s) { second_front(on, tree, s, L, Y, S, X, above_S, above_X); });
}

// Under Pool, compiled once: src/cpu/multifrontal.cpp.
#define GOSSAMER_CHOLESKY_TANGENT(T, ...)                                                                             \
  __VA_ARGS__ template void cholesky_tangent(const Pool&, const AssemblyTree&, const T*, T*);                         \
  __VA_ARGS__ template void cholesky_tangent(const Pool&, const AssemblyTree&, const T*, const T*, T*);               \
  __VA_ARGS__ template void cholesky_second(const Pool&, const AssemblyTree&, const T*, const T*, const T*, const T*, \
                                            T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_CHOLESKY_TANGENT(double, extern)
#endif

}  // namespace gossamer::kernels
