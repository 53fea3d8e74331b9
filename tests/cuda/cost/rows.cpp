// SPDX-License-Identifier: BSD-3-Clause
// What works on the rows of one matrix: softmax, the place of the maximum, triangular solves.
#include <algorithm>

#include <gossamer/kernels/argmax.h>
#include <gossamer/kernels/softmax.h>
#include <gossamer/kernels/triangular.h>
#include "ops.h"

namespace cost {

using gossamer::Csr;
using gossamer::Cuda;
namespace kernels = gossamer::kernels;

// 7 flops an entry: compare, subtract, exp, add; subtract, exp, divide.
template <class T>
Work softmax(const Pattern& A, Shape s) {
  const auto matrix = with_values<T>(on_device(A), s.heads);
  T *P = array<T>(A.nnz() * s.heads), *scratch = array<T>(2 * kernels::piece_places(A.nnz()) * s.heads);
  counted([&] { kernels::row_softmax(Cuda{}, matrix, P, scratch); });
  return {7.0 * static_cast<double>(A.nnz() * s.heads)};
}

// One comparison an entry.
template <class T>
Work argmax(const Pattern& A, Shape s) {
  const auto matrix = with_values<T>(on_device(A), s.heads);
  auto *at = array<int64_t>(A.rows * s.heads), *scratch = array<int64_t>(kernels::piece_places(A.nnz()) * s.heads);
  counted([&] { kernels::row_argmax(Cuda{}, matrix, false, at, scratch); });
  return {static_cast<double>(A.nnz() * s.heads)};
}

// The lower triangle of A with a diagonal; columns ascend, so that it is the last of its row.
static Pattern lower(const Pattern& A) {
  Pattern L{A.rows, A.rows, {0}, {}};
  for (int64_t i = 0; i < A.rows; ++i) {
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      if (A.indices[p] < i) L.indices.push_back(A.indices[p]);
    L.indices.push_back(static_cast<int32_t>(i));
    L.indptr.push_back(static_cast<int32_t>(L.indices.size()));
  }
  return L;
}

// The rows of the longest chain in which each waits for the one before.
static int64_t chain_of(const Pattern& L) {
  std::vector<int64_t> length(L.rows, 1);
  for (int64_t i = 0; i < L.rows; ++i)
    for (int64_t p = L.indptr[i]; p < L.indptr[i + 1]; ++p)
      if (L.indices[p] < i) length[i] = std::max(length[i], length[L.indices[p]] + 1);
  return length.empty() ? 0 : *std::max_element(length.begin(), length.end());
}

// 2 flops an entry beside the diagonal and column, a division for the diagonal. Lᵀ is solved from the last row on.
template <class T>
Work solve(const Pattern& A, Shape s, bool transpose) {
  const Pattern L = lower(A);
  const Transposed t = transpose ? transposed(L) : Transposed{};
  Csr<T, int32_t> matrix = with_values<T>(on_device(transpose ? t.pattern : L));
  if (transpose) matrix.perm = copy(t.perm);
  const int64_t tiles = (s.width + 31) / 32;
  const T* b = numbers<T>(L.rows * s.width);
  T* x = array<T>(L.rows * s.width);
  const gossamer::kernels::SolveProgress progress{array<unsigned long long>(1), array<int>(L.rows * tiles),
                                                  array<unsigned long long>(1)};
  std::fill_n(progress.ready, L.rows * tiles, 0);
  *progress.tickets = 0, *progress.bad = static_cast<unsigned long long>(L.rows);
  counted([&] {
    kernels::solve_triangular(Cuda{}, matrix, gossamer::Triangle{transpose, false}, b, s.width, s.width, x, progress);
  });
  const auto columns = static_cast<double>(s.width);
  return {columns * (2.0 * static_cast<double>(L.nnz() - L.rows) + static_cast<double>(L.rows)), chain_of(L)};
}

template <class T>
void add_rows(Ops& ops) {
  ops["row_softmax"] = softmax<T>;
  ops["argmax"] = argmax<T>;
  ops["solve_triangular"] = [](const Pattern& A, Shape s) { return solve<T>(A, s, false); };
  ops["solve_triangular_transposed"] = [](const Pattern& A, Shape s) { return solve<T>(A, s, true); };
}
template void add_rows<float>(Ops&);
template void add_rows<double>(Ops&);

}  // namespace cost
