// SPDX-License-Identifier: BSD-3-Clause
// The reverse mode of the Cholesky factor of multifrontal.h (Murray 2016, by fronts). With G the gradient of a scalar
// in L and Y = G / 2, the gradient S in the symmetric A, entry by entry of the whole matrix, from the last front to the
// first:
//
//   Y_R ← Y_R - S_RR L_R         S_RJ = Y_R L_J⁻¹        S_RR: what the fronts above have found on (R, R)
//   Y_J ← Y_J - S_RJᵀ L_R        S_JJ = L_J⁻ᵀ sym(L_Jᵀ Y_J) L_J⁻¹        sym: the lower triangle, mirrored
//
// G = 2 diag(1 / L_jj), the gradient of log det A, makes it the *selected inverse*: S = A⁻¹ where L has entries, which
// are Takahashi's equations (1973). Three times the work of the factor, the same bits for every thread count.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include <gossamer/kernels/multifrontal.h>

namespace gossamer::kernels {

// One front of the equations above; Y becomes S.
template <Host E, class T>
void reverse_front(const E& exec, const AssemblyTree& tree, int64_t s, const T* L, T* S, Descent<T>& above) {
  const Front<const T> F(tree, s, L);
  const Front<T> Y(tree, s, S);
  const int64_t n = F.all.columns, below = F.R.rows;
  const std::unique_ptr<T[]> taken = above.taken(s);
  const Block<const T> S_RR = by_columns(static_cast<const T*>(taken.get()), below, below, below);
  subtract_product(exec, Y.R, S_RR, F.R.transposed());
  solve_right(exec, Y.R, F.J, /*transposed=*/false);
  subtract_product(exec, Y.J, Block<const T>(Y.R.transposed()), F.R.transposed(), /*lower=*/true);
  const std::unique_ptr<T[]> room(new T[2 * n * n]);
  const Block<T> lower = by_columns(room.get(), n, n, n), minus = by_columns(room.get() + n * n, n, n, n);
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < n; ++r) {
      lower(r, c) = r >= c ? F.J(r, c) : T{0};
      minus(r, c) = r >= c ? -Y.J(r, c) : T{0};
      Y.J(r, c) = 0;
    }
  subtract_product(exec, Y.J, Block<const T>(lower.transposed()), Block<const T>(minus.transposed()), /*lower=*/true);
  mirror(Y.J);
  solve_right(exec, Y.J, F.J, /*transposed=*/false);  // sym(…) L_J⁻¹
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < n; ++r) minus(r, c) = Y.J(c, r);
  solve_right(exec, minus, F.J, /*transposed=*/false);  // its transpose L_J⁻¹: S_JJ is symmetric
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < n; ++r) Y.J(r, c) = minus(std::max(r, c), std::min(r, c));
  above.pass_on(s, Front<const T>(tree, s, S), taken.get());
}

// S: as L; comes as Y, and becomes the gradient in A.
template <Host E, class T>
void cholesky_gradient(const E& exec, const AssemblyTree& tree, const T* L, T* S) {
  Descent<T> above(tree);
  for_each_front_down(exec, tree, [&](const auto& on, int64_t s) { reverse_front(on, tree, s, L, S, above); });
}

// S: as L; A⁻¹ where L has entries, the triangles of the fronts whole.
template <Host E, class T>
void selected_inverse(const E& exec, const AssemblyTree& tree, const T* L, T* S) {
  std::fill(S, S + tree.size(), T{0});
  for (int64_t s = 0; s < tree.count(); ++s)
    for (int64_t c = 0; c < tree.columns(s); ++c) {
      const int64_t at = tree.value_ptr[s] + c * (tree.height(s) + 1);
      S[at] = 1 / L[at];
    }
  cholesky_gradient(exec, tree, L, S);
}

// Under Pool, compiled once: src/cpu/multifrontal.cpp.
#define GOSSAMER_SELECTED_INVERSE(T, ...)                                                      \
  __VA_ARGS__ template void cholesky_gradient(const Pool&, const AssemblyTree&, const T*, T*); \
  __VA_ARGS__ template void selected_inverse(const Pool&, const AssemblyTree&, const T*, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_SELECTED_INVERSE(double, extern)
#endif

}  // namespace gossamer::kernels
