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
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

template <class T, class I>
GOSSAMER_HD int64_t argmax_row(const Csr<T, I>& A, int64_t i, int64_t h, bool stored) {
  int64_t best = A.nnz;
  Sum<T> top = 0;
  for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
    const Sum<T> v = static_cast<Sum<T>>(A.values[p * A.heads + h]);
    if (best == A.nnz || v > top || (v != v && top == top)) best = p, top = v;
  }
  const bool full = stored || A.indptr[i + 1] - A.indptr[i] == A.cols;
  return !full && top < 0 ? A.nnz : best;
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/argmax.cu.
template <class T, class I>
[[gnu::weak]] void row_argmax(Cuda, const Csr<T, I>& A, bool stored, int64_t* at);

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
