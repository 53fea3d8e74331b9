// SPDX-License-Identifier: BSD-3-Clause
// The derivative of the selected inverse: X = -(A⁻¹ G A⁻¹) where the factor L of A has entries, for a G on the pattern
// of A that is symmetric (σ = 1) or skew (σ = -1); X is, too. Elimination of A + h G as blocks, F_JJ = D, F_RJ = W D,
// and its inverse Z, differentiated; a prime is a derivative in h:
//
//   up      K = F'_RJ - W F'_JJ       W' = K D⁻¹       U' = (Σ_children U' on (R, R)) - K Wᵀ - σ W F'_RJᵀ
//   down    Z'_RJ = -Z'_RR W - Z_RR W'       Z'_JJ = -D⁻¹ F'_JJ D⁻¹ - σ W'ᵀ Z_RJ - Wᵀ Z'_RJ
//
// with D = L_J L_Jᵀ and W = L_R L_J⁻¹. Because log det has a symmetric Hessian, this is both ways its second
// derivative, at a few times the work of the first one. The same bits for every thread count.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include <gossamer/kernels/dense_triangle.h>
#include <gossamer/kernels/front.h>
#include <gossamer/kernels/multifrontal.h>

namespace gossamer::kernels {

// B ← B D⁻¹
template <Host E, class T>
void divide_by_pivots(const E& exec, const Block<T>& B, const Block<const T>& L_J) {
  solve_right(exec, B, L_J, /*transposed=*/true);
  solve_right(exec, B, L_J, /*transposed=*/false);
}

// W = L_R L_J⁻¹, by columns in `room`.
template <Host E, class T>
Block<const T> multipliers(const E& exec, const Front<const T>& F, T* room) {
  const Block<T> W = by_columns(room, F.R.rows, F.R.columns, F.R.rows);
  for (int64_t c = 0; c < W.columns; ++c) std::copy_n(&F.R(0, c), W.rows, &W(0, c));
  solve_right(exec, W, F.J, /*transposed=*/false);
  return W;
}

// The way up: X comes as G; its J become F'_JJ, whole, and its R become W'.
template <Host E, class T>
void tangent_up(const E& exec, const AssemblyTree& tree, int64_t s, const T* L, T sign, T* X, Ascent<T>& below) {
  const Front<const T> F(tree, s, L);
  const Front<T> G(tree, s, X);
  const Block<T> U = below.gathered(s, G);
  const int64_t m = F.R.rows, n = F.R.columns;
  mirror(G.J, sign);
  if (m == 0) return;
  const std::unique_ptr<T[]> room(new T[2 * m * n]);
  const Block<const T> W = multipliers(exec, F, room.get());
  const Block<T> other = by_columns(room.get() + m * n, m, n, m);  // σ F'_RJ
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < m; ++r) other(r, c) = sign * G.R(r, c);
  subtract_product(exec, U, W, Block<const T>(other), /*lower=*/true);
  subtract_product(exec, G.R, W, Block<const T>(G.J.transposed()));  // K
  subtract_product(exec, U, Block<const T>(G.R), W, /*lower=*/true);
  divide_by_pivots(exec, G.R, F.J);
}

// The way down: X becomes Z'. S is the selected inverse.
template <Host E, class T>
void tangent_down(const E& exec, const AssemblyTree& tree, int64_t s, const T* L, const T* S, T sign, T* X,
                  Descent<T>& above_S, Descent<T>& above_X) {
  const Front<const T> F(tree, s, L), Z(tree, s, S);
  const Front<T> G(tree, s, X);
  const int64_t m = F.R.rows, n = F.R.columns;
  const std::unique_ptr<T[]> S_RR = above_S.taken(s), X_RR = above_X.taken(s), room(new T[2 * m * n + n * n]);
  const Block<const T> W = multipliers(exec, F, room.get());
  const Block<T> found = by_columns(room.get() + m * n, m, n, m), turned = by_columns(room.get() + 2 * m * n, n, n, n);
  std::fill_n(found.data, m * n, T{0});
  const auto square = [m](const T* data) { return by_columns(data, m, m, m); };
  subtract_product(exec, found, Block<const T>(square(X_RR.get())), W.transposed());
  subtract_product(exec, found, Block<const T>(square(S_RR.get())), Block<const T>(G.R.transposed()));
  divide_by_pivots(exec, G.J, F.J);
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < n; ++r) turned(r, c) = -sign * G.J(c, r);
  divide_by_pivots(exec, turned, F.J);  // -σ (F'_JJ D⁻¹)ᵀ D⁻¹ = -D⁻¹ F'_JJ D⁻¹
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < m; ++r) G.R(r, c) *= sign;
  subtract_product(exec, turned, Block<const T>(G.R.transposed()), Z.R.transposed(), /*lower=*/true);
  subtract_product(exec, turned, W.transposed(), Block<const T>(found.transposed()), /*lower=*/true);
  for (int64_t c = 0; c < n; ++c) {
    std::copy_n(&found(0, c), m, &G.R(0, c));
    std::copy_n(&turned(c, c), n - c, &G.J(c, c));
  }
  mirror(G.J, sign);
  above_S.pass_on(s, Z, S_RR.get());
  above_X.pass_on(s, Front<const T>(tree, s, X), X_RR.get());
}

// values: G, in the order of the pattern of the tree. S: from selected_inverse. X: tree.size() numbers, the triangles
// of its fronts whole.
template <Host E, class T>
void inverse_tangent(const E& exec, const AssemblyTree& tree, const T* L, const T* S, const T* values, bool skew,
                     T* X) {
  const T sign = skew ? T{-1} : T{1};
  scatter(tree, values, X);
  Ascent<T> below(tree);
  for_each_front_up(exec, tree, [&](const auto& on, int64_t s) -> int64_t {
    tangent_up(on, tree, s, L, sign, X, below);
    return -1;
  });
  Descent<T> above_S(tree), above_X(tree, sign);
  for_each_front_down(exec, tree,
                      [&](const auto& on, int64_t s) { tangent_down(on, tree, s, L, S, sign, X, above_S, above_X); });
}

// Under Pool, compiled once: src/cpu/multifrontal.cpp.
#define GOSSAMER_INVERSE_TANGENT(T, ...) \
  __VA_ARGS__ template void inverse_tangent(const Pool&, const AssemblyTree&, const T*, const T*, const T*, bool, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_INVERSE_TANGENT(double, extern)
#endif

}  // namespace gossamer::kernels
