// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factor of a sparse symmetric positive definite matrix, front by front (Duff & Reid 1983):
//
//   F = A on (J ∪ R, J) + Σ_children U        [L_J; L_R] = the columns J of the Cholesky factor of F
//   U = (Σ_children U on (R, R)) - L_R L_Rᵀ   is added to the parent's F
//
// L: the trapezoids of an AssemblyTree; what is above their diagonals is not said. Bitwise the same for every thread
// count (front.h).
#pragma once
#include <algorithm>
#include <cstdint>

#include <gossamer/kernels/dense_triangle.h>
#include <gossamer/kernels/front.h>

namespace gossamer::kernels {

// The values of a symmetric (or skew) matrix, in the order of its pattern, at their places in the trapezoids. One of
// two mirror images is read.
template <class T>
void scatter(const AssemblyTree& tree, const T* values, T* fronts) {
  std::fill(fronts, fronts + tree.size(), T{0});
  for (size_t p = 0; p < tree.destination.size(); ++p)
    if (tree.destination[p] >= 0) fronts[tree.destination[p]] += values[p];
}

// And back; sign: -1 if it is skew.
template <class T>
void gather(const AssemblyTree& tree, const T* fronts, T sign, T* values) {
  for (size_t p = 0; p < tree.destination.size(); ++p) {
    const int64_t place = tree.destination[p];
    values[p] = place >= 0 ? fronts[place] : sign * fronts[~place];
  }
}

// values: the entries of A in the order of the pattern of the tree. L: tree.size() numbers. Gives the row of A whose
// pivot is not positive, the one that is eliminated first; or -1.
template <Host E, class T>
int64_t factor_cholesky(const E& exec, const AssemblyTree& tree, const T* values, T* L) {
  scatter(tree, values, L);
  Ascent<T> below(tree);
  const int64_t broken = for_each_front_up(exec, tree, [&](const auto& on, int64_t s) -> int64_t {
    const Front<T> F(tree, s, L);
    const Block<T> U = below.gathered(s, F);
    if (const int64_t column = cholesky(on, F.all); column >= 0) return tree.first[s] + column;
    subtract_product(on, U, Block<const T>(F.R), Block<const T>(F.R), /*lower=*/true);
    return -1;
  });
  return broken < 0 ? -1 : std::find(tree.rank.begin(), tree.rank.end(), broken) - tree.rank.begin();
}

// Under Pool, compiled once: src/cpu/multifrontal.cpp.
#define GOSSAMER_MULTIFRONTAL(T, ...) \
  __VA_ARGS__ template int64_t factor_cholesky(const Pool&, const AssemblyTree&, const T*, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_MULTIFRONTAL(double, extern)
#endif

}  // namespace gossamer::kernels
