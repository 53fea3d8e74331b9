// SPDX-License-Identifier: BSD-3-Clause
// The Kronecker product of two patterns, and which entries each of its entries is the product of:
//
//   K[i₁ m₂ + i₂, j₁ n₂ + j₂] = A[i₁, j₁] B[i₂, j₂],        entry q is A's from_A[q] times B's from_B[q]
//
// B is m₂ × n₂. O(m₁ m₂ + nnz_A nnz_B). Columns come out sorted as they are visited. Serial: it runs once per pair of
// patterns.
#pragma once
#include <gossamer/kernels/csr.h>

namespace gossamer::kernels {

// indptr: A.rows · B.rows + 1; indices, from_A, from_B: A.nnz · B.nnz.
template <class I, class J>
void kron(const PatternView<I>& A, const PatternView<I>& B, J* indptr, J* indices, J* from_A, J* from_B) {
  int64_t q = 0;
  *indptr++ = 0;
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t k = 0; k < B.rows; ++k) {
      for (int64_t a = A.indptr[i]; a < A.indptr[i + 1]; ++a)
        for (int64_t b = B.indptr[k]; b < B.indptr[k + 1]; ++b, ++q) {
          indices[q] = static_cast<J>(A.indices[a] * B.cols + B.indices[b]);
          from_A[q] = static_cast<J>(a);
          from_B[q] = static_cast<J>(b);
        }
      *indptr++ = static_cast<J>(q);
    }
}

}  // namespace gossamer::kernels
