// SPDX-License-Identifier: BSD-3-Clause
// Y = A X for `heads` matrices A on one pattern, X dense.
//
//   Y[i, h, :] = Σ_p values[p, h] X[indices[p], h, :]        p over row i;  O(nnz · heads · width)
//
// A: rows × cols.  X: (cols, heads, width), rows `ldx` apart.  Y: (rows, heads, width), contiguous.
// One thread owns one row of Y and adds in the order of p: bitwise the same for every thread count.
#pragma once
#include "exec.h"
#include "simd.h"

namespace gossamer::kernels {

// `vectors` registers of columns of one row of Y: Y[i, h, 0 : vectors · lanes]. X and y point at their first column.
template <int lanes, int vectors, bool far, class T, class I>
[[gnu::always_inline]] inline void spmm_tile(const Csr<T, I>& A, int64_t i, int64_t h, const T* X, int64_t ldx, T* y) {
  constexpr int64_t ahead = 12, line = 64 / sizeof(T);  // entries to look ahead; columns in a cache line
  Vec<Sum<T>, lanes> sum[vectors] = {}, x;
  for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
    if constexpr (far) {
      const T* next = X + A.indices[std::min(p + ahead, A.nnz - 1)] * ldx;
      for (int64_t c = 0; c < vectors * lanes; c += line) __builtin_prefetch(next + c);
    }
    const Sum<T> a = A.values[(A.perm ? A.perm[p] : p) * A.heads + h];
    const T* row = X + A.indices[p] * ldx;
    for (int k = 0; k < vectors; ++k) {
      load<lanes>(row + k * lanes, x);
      sum[k] += a * x;
    }
  }
  for (int k = 0; k < vectors; ++k) store<lanes>(sum[k], y + k * lanes);
}

// A row narrower than twice `lanes`: one tile, or two that overlap.
template <int lanes, bool far, class T, class I>
[[gnu::always_inline]] inline void spmm_narrow_row(const Csr<T, I>& A, int64_t i, int64_t h, const T* X, int64_t ldx,
                                                   int64_t width, T* y) {
  if constexpr (lanes > 1)
    if (width < lanes) return spmm_narrow_row<lanes / 2, far>(A, i, h, X, ldx, width, y);
  if (width == 0) return;
  spmm_tile<lanes, 1, far>(A, i, h, X, ldx, y);
  if (const int64_t c = width - lanes; c > 0) spmm_tile<lanes, 1, far>(A, i, h, X + c, ldx, y + c);
}

// One row of Y for one head: the widest tiles first; a remainder is covered by a last tile that overlaps its neighbour.
template <int lanes, bool far, class T, class I>
[[gnu::always_inline]] inline void spmm_row(const Csr<T, I>& A, int64_t i, int64_t h, const T* X, int64_t ldx,
                                            int64_t width, T* y) {
  if (width < lanes) return spmm_narrow_row<lanes / 2, far>(A, i, h, X, ldx, width, y);
  int64_t c = 0;
  for (; c + 8 * lanes <= width; c += 8 * lanes) spmm_tile<lanes, 8, far>(A, i, h, X + c, ldx, y + c);
  if (c + 4 * lanes <= width) spmm_tile<lanes, 4, far>(A, i, h, X + c, ldx, y + c), c += 4 * lanes;
  if (c + 2 * lanes <= width) spmm_tile<lanes, 2, far>(A, i, h, X + c, ldx, y + c), c += 2 * lanes;
  if (c + lanes <= width) spmm_tile<lanes, 1, far>(A, i, h, X + c, ldx, y + c), c += lanes;
  if (c < width) c = width - lanes, spmm_tile<lanes, 1, far>(A, i, h, X + c, ldx, y + c);
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/spmm.cu.
template <class T, class I>
[[gnu::weak]] void spmm(Cuda, const Csr<T, I>& A, const T* X, int64_t ldx, int64_t width, T* Y);

template <Host E, class T, class I>
void spmm(const E& exec, const Csr<T, I>& A, const T* X, int64_t ldx, int64_t width, T* Y) {
  constexpr int64_t near_bytes = 1 << 20;  // what the processor keeps close by itself: no prefetch pays below it
  const bool far = A.cols * ldx * static_cast<int64_t>(sizeof(T)) > near_bytes;
  for_each_row_range(exec, A, A.heads * width, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      constexpr int lanes = bytes / sizeof(Sum<T>);
      for (int64_t i = begin; i < end; ++i)
        for (int64_t h = 0; h < A.heads; ++h) {
          const T* x = X + h * width;
          T* y = Y + (i * A.heads + h) * width;
          if (far)
            spmm_row<lanes, true>(A, i, h, x, ldx, width, y);
          else
            spmm_row<lanes, false>(A, i, h, x, ldx, width, y);
        }
    });
  });
}

}  // namespace gossamer::kernels
