// SPDX-License-Identifier: BSD-3-Clause
// Incomplete factors: triangles without fill whose product is A at the entries of A.
//
//   IC(0)   (L Lᵀ)_ij = a_ij    on the lower triangle, L lower triangular          Σ_k≤j L_ik L_jk = a_ij
//   ILU(0)  (L U)_ij = a_ij     on the pattern, L with ones on the diagonal        Σ_k≤min(i,j) L_ik U_kj = a_ij
//
// F holds the factor: L on the pattern of the lower triangle, or L below the diagonal and U on and above it. Each
// equation names entries of F that stand before its own in row order, so F is found entry by entry, and its derivative
//
//   J dF = dA
//
// has a lower triangular J. Row e of J has, for each product F_p F_q of equation e, F_q in column p and F_p in column
// q: its pattern is that of A's, and its values are entries of F.
#pragma once
#include <cmath>
#include <vector>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

enum class Incomplete { cholesky, lu };

// diagonal[i]: the entry at (i, i). The first row that has none, -1 if all do.
template <class I>
int64_t find_diagonal(const PatternView<I>& A, I* diagonal) {
  for (int64_t i = 0; i < A.rows; ++i) {
    const int64_t p = place_of(A.indices, A.indptr[i], A.indptr[i + 1], static_cast<I>(i));
    if (p == A.indptr[i + 1] || A.indices[p] != i) return i;
    diagonal[i] = static_cast<I>(p);
  }
  return -1;
}

// The rows without a diagonal entry.
template <class I>
std::vector<int64_t> without_diagonal(const PatternView<I>& A) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < A.rows; ++i) {
    const int64_t p = place_of(A.indices, A.indptr[i], A.indptr[i + 1], static_cast<I>(i));
    if (p == A.indptr[i + 1] || A.indices[p] != i) rows.push_back(i);
  }
  return rows;
}

// f(e, p, q) for the products F_p F_q of each equation e, but for the one with a pivot. The products of an equation
// come with p and q ascending. `place` has A.cols numbers, all -1, and has them again at the end.
template <class I, class F>
void for_each_product(Incomplete kind, const PatternView<I>& A, const I* diagonal, int64_t i, I* place, const F& f) {
  const int64_t begin = A.indptr[i], end = A.indptr[i + 1];
  if (kind == Incomplete::lu) {
    for (int64_t e = begin; e < end; ++e) place[A.indices[e]] = static_cast<I>(e);
    for (int64_t p = begin; p < diagonal[i]; ++p) {
      const int64_t k = A.indices[p];
      for (int64_t q = diagonal[k] + 1; q < A.indptr[k + 1]; ++q)
        if (const int64_t e = place[A.indices[q]]; e >= 0) f(e, p, q);
    }
    for (int64_t e = begin; e < end; ++e) place[A.indices[e]] = -1;
    return;
  }
  for (int64_t e = begin; e < end; ++e) {  // rows i and j of L, up to column j
    int64_t p = begin, q = A.indptr[A.indices[e]];
    const int64_t stop = diagonal[A.indices[e]];
    while (p < e && q < stop)
      if (A.indices[p] < A.indices[q])
        ++p;
      else if (A.indices[p] > A.indices[q])
        ++q;
      else
        f(e, p++, q++);
  }
}

// F for A on its pattern, which is that of the lower triangle for Cholesky. The first row whose pivot is not positive
// (Cholesky), or is zero or not a number (LU); -1 if all is well.
template <class T, class I>
int64_t incomplete_factor(Incomplete kind, const Csr<T, I>& A, const I* diagonal, T* F) {
  std::vector<I> place(kind == Incomplete::lu ? A.cols : 0, I{-1});
  for (int64_t i = 0; i < A.rows; ++i) {
    const int64_t begin = A.indptr[i], end = A.indptr[i + 1];
    for (int64_t e = begin; e < end; ++e) F[e] = A.values[e];
    if (kind == Incomplete::lu) {
      int64_t divided = begin;  // entries before this one are L's
      const auto divide_to = [&](int64_t p) {
        for (; divided <= p; ++divided) F[divided] /= F[diagonal[A.indices[divided]]];
      };
      for_each_product(kind, A, diagonal, i, place.data(), [&](int64_t e, int64_t p, int64_t q) {
        divide_to(p);
        F[e] -= F[p] * F[q];
      });
      divide_to(diagonal[i] - 1);
      if (!(std::abs(F[diagonal[i]]) > 0)) return i;
      continue;
    }
    int64_t finished = begin;
    const auto finish_to = [&](int64_t e) {
      for (; finished < e; ++finished) F[finished] /= F[diagonal[A.indices[finished]]];
    };
    for_each_product(kind, A, diagonal, i, place.data(), [&](int64_t e, int64_t p, int64_t q) {
      finish_to(e);
      F[e] -= F[p] * F[q];
    });
    finish_to(end - 1);
    if (!(F[end - 1] > 0)) return i;
    F[end - 1] = std::sqrt(F[end - 1]);
  }
  return -1;
}

// Row lengths of J, as indptr (nnz + 1).
template <class I>
void count_jacobian(Incomplete kind, const PatternView<I>& A, const I* diagonal, int64_t* indptr) {
  std::vector<I> place(kind == Incomplete::lu ? A.cols : 0, I{-1});
  indptr[0] = 0;
  for (int64_t i = 0; i < A.rows; ++i) {
    for (int64_t e = A.indptr[i]; e < A.indptr[i + 1]; ++e) indptr[e + 1] = A.indices[e] < i ? 2 : 1;
    for_each_product(kind, A, diagonal, i, place.data(),
                     [&](int64_t e, int64_t p, int64_t q) { indptr[e + 1] += p == q ? 1 : 2; });
  }
  for (int64_t e = 0; e < A.nnz; ++e) indptr[e + 1] += indptr[e];
}

// indices: the columns of J, ascending in each row. from: J's value is entry `from` of F, or 1 if from is nnz, which is
// the derivative of U in its own equation. The equation of a diagonal entry of Cholesky is halved: Σ L_ik dL_ik = da_ii
// / 2.
template <class I, class J>
void fill_jacobian(Incomplete kind, const PatternView<I>& A, const I* diagonal, const int64_t* indptr, J* indices,
                   int64_t* from) {
  std::vector<I> place(kind == Incomplete::lu ? A.cols : 0, I{-1});
  std::vector<int64_t> next(A.nnz, 0);
  const auto put = [&](int64_t at, int64_t column, int64_t entry) {
    indices[at] = static_cast<J>(column);
    from[at] = entry;
  };
  for (int64_t i = 0; i < A.rows; ++i) {
    // Row e: the entries of earlier rows, the pivot among them as the last, then those of row i, then e itself.
    for_each_product(kind, A, diagonal, i, place.data(), [&](int64_t e, int64_t p, int64_t q) {
      const int64_t first = indptr[e], second = first + (indptr[e + 1] - first) / 2, k = next[e]++;
      if (p == q) return put(first + k, p, p);
      put(first + k, q, p);
      put(second + k, p, q);
    });
    for (int64_t e = A.indptr[i]; e < A.indptr[i + 1]; ++e) {
      const int64_t j = A.indices[e], last = indptr[e + 1] - 1;
      if (j < i) {
        put(indptr[e] + next[e], diagonal[j], e);
        put(last, e, diagonal[j]);
      } else {
        put(last, e, kind == Incomplete::lu ? A.nnz : e);
      }
    }
  }
}

// Compiled once: src/cpu/incomplete.cpp.
#define GOSSAMER_INCOMPLETE(T, I, ...) \
  __VA_ARGS__ template int64_t incomplete_factor(Incomplete, const Csr<T, I>&, const I*, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_INCOMPLETE, extern)
#endif

}  // namespace gossamer::kernels
