// SPDX-License-Identifier: BSD-3-Clause
// The transpose of a pattern, with the way back to the values:
//
//   Aᵀ: cols × rows,  entry q of Aᵀ is entry perm[q] of A        O(rows + cols + nnz)
//
// A counting sort by column, serial: it runs once per pattern and is then kept with it.
#pragma once
#include <algorithm>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// indptr_t: cols + 1; indices_t, perm: nnz.
template <class I>
void transpose(const PatternView<I>& A, I* indptr_t, I* indices_t, I* perm) {
  std::fill(indptr_t, indptr_t + A.cols + 1, I{0});
  for (int64_t p = 0; p < A.nnz; ++p) ++indptr_t[A.indices[p] + 1];
  for (int64_t j = 0; j < A.cols; ++j) indptr_t[j + 1] += indptr_t[j];
  for (int64_t i = 0; i < A.rows; ++i)  // rows ascend, so each column of A receives its rows in order
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
      const I q = indptr_t[A.indices[p]]++;
      indices_t[q] = static_cast<I>(i);
      perm[q] = static_cast<I>(p);
    }
  // Every start has moved to its end, which is the next column's start: shift back by one.
  for (int64_t j = A.cols; j > 0; --j) indptr_t[j] = indptr_t[j - 1];
  indptr_t[0] = 0;
}

// Compiled once: src/cpu/transpose.cpp.
#define GOSSAMER_TRANSPOSE(I, ...) __VA_ARGS__ template void transpose(const PatternView<I>&, I*, I*, I*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_TRANSPOSE, extern)
#endif

}  // namespace gossamer::kernels
