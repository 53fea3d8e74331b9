// SPDX-License-Identifier: BSD-3-Clause
// The place of the largest number of each row, entries that are not stored counting as zeros. Values are (nnz, heads).
//
//   at[i, h] = the first p of row i with the largest values[p, h], or nnz where the largest is a zero that is not
//   stored
//
// O(nnz · heads), one thread a row. NaN counts as largest. A stored zero goes before one that is not stored. A matrix
// with no columns has no largest number: at = nnz. With `stored`, what is not stored does not count: at = nnz for an
// empty row alone.
#pragma once
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/half.h>
#include <gossamer/kernels/pieces.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// The better of the entries p and q, which come in this order; nnz stands for none.
template <class T, class I>
GOSSAMER_HD int64_t better_entry(const Csr<T, I>& A, int64_t h, int64_t p, int64_t q) {
  if (p == A.nnz || q == A.nnz) return p == A.nnz ? q : p;
  const Sum<T> v = static_cast<Sum<T>>(A.values[p * A.heads + h]), w = static_cast<Sum<T>>(A.values[q * A.heads + h]);
  return w > v || (w != w && v == v) ? q : p;
}

// The first of the entries begin … end - 1 with the largest value, nnz if there are none.
template <class T, class I>
GOSSAMER_HD int64_t argmax_entries(const Csr<T, I>& A, int64_t begin, int64_t end, int64_t h) {
  int64_t best = A.nnz;
  Sum<T> top = 0;
  for (int64_t p = begin; p < end; ++p) {
    const Sum<T> v = static_cast<Sum<T>>(A.values[p * A.heads + h]);
    if (best == A.nnz || v > top || (v != v && top == top)) best = p, top = v;
  }
  return best;
}

// `best` of the entries of row i, unless a zero that is not stored is larger.
template <class T, class I>
GOSSAMER_HD int64_t or_zero(const Csr<T, I>& A, int64_t i, int64_t h, bool stored, int64_t best) {
  const bool full = stored || A.indptr[i + 1] - A.indptr[i] == A.cols;
  return !full && best != A.nnz && static_cast<Sum<T>>(A.values[best * A.heads + h]) < 0 ? A.nnz : best;
}

template <class T, class I>
GOSSAMER_HD int64_t argmax_row(const Csr<T, I>& A, int64_t i, int64_t h, bool stored) {
  return or_zero(A, i, h, stored, argmax_entries(A, A.indptr[i], A.indptr[i + 1], h));
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/argmax.cu. scratch: (piece_places(nnz), heads).
template <class T, class I>
[[gnu::weak]] void row_argmax(Cuda, const Csr<T, I>& A, bool stored, int64_t* at, int64_t* scratch);

template <Host E, class T, class I>
void row_argmax(const E& exec, const Csr<T, I>& A, bool stored, int64_t* at) {
  for_each_row_range(exec, A, A.heads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t h = 0; h < A.heads; ++h) at[i * A.heads + h] = argmax_row(A, i, h, stored);
  });
}

// Under Pool, compiled once: src/cpu/argmax.cpp.
#define GOSSAMER_ARGMAX(T, I, ...) __VA_ARGS__ template void row_argmax(const Pool&, const Csr<T, I>&, bool, int64_t*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_ARGMAX, extern)
#endif

}  // namespace gossamer::kernels
