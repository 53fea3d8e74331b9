// SPDX-License-Identifier: BSD-3-Clause
// One level of a multigrid cycle for A z = b with Gauss–Seidel as its smoother, each way in one pass over A and P.
// A = L + D + U, lower triangle, diagonal, upper triangle; P is the prolongation from the next level.
//
//   descend   x = (L + D)⁻¹ b         c = Pᵀ (b - A x) = -Pᵀ U x
//   ascend    x ← x + P e             x ← x + (D + U)⁻¹ (b - A x)
//
// For symmetric A this is a symmetric operator: the second sweep is the transpose of the first one. The residual of a
// row waits until x is known as far as the row reaches, and the correction is added just before a row needs it: a
// grid's rows are still in the cache then, and neither the residual nor P e is ever stored.
//
// b, x: (rows, width), e, c: (cols of P, width). inverse: 1 / D. diagonal: where the entries of D are. Rows need the
// rows before them, so threads share the columns. O((nnz(A) + nnz(P)) · width).
#pragma once
#include <algorithm>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

template <class T, class I>
struct CycleLevel {
  Csr<T, I> A, P;
  const I* diagonal;
  const T* inverse;
};

// Columns first … first + count - 1; count is `fixed` unless that is 0.
template <int fixed, class T, class I>
struct CycleColumns {
  const CycleLevel<T, I>& level;
  int64_t width, first, count;

  int64_t columns() const { return fixed ? fixed : count; }
  int64_t at(int64_t i) const { return i * width + first; }
  // sum -= Σ A_ij x_j over the entries p, p + step, … before stop.
  template <int step>
  [[gnu::always_inline]] void subtract(int64_t p, int64_t stop, const T* x, T* sum) const {
    for (; p != stop; p += step)
      for (int64_t c = 0; c < columns(); ++c) sum[c] -= level.A.values[p] * x[at(level.A.indices[p]) + c];
  }

  void descend(const T* b, T* x, T* coarse, T* sum) const {
    const auto &A = level.A, &P = level.P;
    const I* diagonal = level.diagonal;
    const T* inverse = level.inverse;
    for (int64_t k = 0; k < P.cols; ++k)
      for (int64_t c = 0; c < columns(); ++c) coarse[at(k) + c] = 0;
    int64_t restricted = 0;
    const auto restrict_row = [&](int64_t k) {
      for (int64_t c = 0; c < columns(); ++c) sum[c] = 0;
      subtract<1>(diagonal[k] + 1, A.indptr[k + 1], x, sum);
      for (int64_t q = P.indptr[k]; q < P.indptr[k + 1]; ++q)
        for (int64_t c = 0; c < columns(); ++c) coarse[at(P.indices[q]) + c] += P.values[q] * sum[c];
    };
    for (int64_t i = 0; i < A.rows; ++i) {
      for (int64_t c = 0; c < columns(); ++c) sum[c] = b[at(i) + c];
      subtract<1>(A.indptr[i], diagonal[i], x, sum);
      for (int64_t c = 0; c < columns(); ++c) x[at(i) + c] = sum[c] * inverse[i];
      while (restricted <= i && A.indices[A.indptr[restricted + 1] - 1] <= i) restrict_row(restricted++);
    }
  }

  void ascend(const T* b, const T* e, T* x, T* sum) const {
    const auto& [A, P, diagonal, inverse] = level;
    int64_t corrected = A.rows;
    for (int64_t i = A.rows - 1; i >= 0; --i) {
      for (const int64_t reach = A.indices[A.indptr[i]]; corrected > reach;) {
        --corrected;
        for (int64_t q = P.indptr[corrected]; q < P.indptr[corrected + 1]; ++q)
          for (int64_t c = 0; c < columns(); ++c) x[at(corrected) + c] += P.values[q] * e[at(P.indices[q]) + c];
      }
      for (int64_t c = 0; c < columns(); ++c) sum[c] = b[at(i) + c];
      subtract<1>(A.indptr[i], diagonal[i], x, sum);
      subtract<-1>(A.indptr[i + 1] - 1, diagonal[i], x, sum);
      for (int64_t c = 0; c < columns(); ++c) x[at(i) + c] = sum[c] * inverse[i];
    }
  }
};

// f(columns, sums) for stretches of at most 16 columns.
template <Host E, class T, class I, class F>
void for_each_columns(const E& exec, const CycleLevel<T, I>& level, int64_t width, const F& f) {
  constexpr int64_t most = 16;
  exec.parallel_for((width + most - 1) / most, [&](int64_t k) {
    const int64_t first = k * most, count = std::min(most, width - first);
    T sum[most];
    if (count == 1)
      f(CycleColumns<1, T, I>{level, width, first, 1}, sum);
    else
      f(CycleColumns<0, T, I>{level, width, first, count}, sum);
  });
}

template <Host E, class T, class I>
void descend(const E& exec, const CycleLevel<T, I>& level, const T* b, int64_t width, T* x, T* coarse) {
  for_each_columns(exec, level, width, [&](const auto& columns, T* sum) { columns.descend(b, x, coarse, sum); });
}

template <Host E, class T, class I>
void ascend(const E& exec, const CycleLevel<T, I>& level, const T* b, const T* e, int64_t width, T* x) {
  for_each_columns(exec, level, width, [&](const auto& columns, T* sum) { columns.ascend(b, e, x, sum); });
}

// Under Pool, compiled once: src/cpu/cycle.cpp.
#define GOSSAMER_CYCLE(T, I, ...)                                                                     \
  __VA_ARGS__ template void descend(const Pool&, const CycleLevel<T, I>&, const T*, int64_t, T*, T*); \
  __VA_ARGS__ template void ascend(const Pool&, const CycleLevel<T, I>&, const T*, const T*, int64_t, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_CYCLE, extern)
#endif

}  // namespace gossamer::kernels
