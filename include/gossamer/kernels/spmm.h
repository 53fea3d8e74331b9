// SPDX-License-Identifier: BSD-3-Clause
// Y = A X for `heads` matrices A on one pattern, X dense.
//
//   Y[i, h, :] = Σ_p values[p, h] X[indices[p], h, :]        p over row i;  O(nnz · heads · width)
//
// A: rows × cols.  X: (cols, heads, width), rows `ldx` apart.  Y: (rows, heads, width), contiguous.
// One thread owns one row of Y and adds in the order of p: bitwise the same for every thread count.
#pragma once

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/locality.h>
#include <gossamer/kernels/pieces.h>
#include <gossamer/kernels/prefetch.h>
#include <gossamer/kernels/runs.h>
#include <gossamer/kernels/simd.h>
#include <gossamer/kernels/stream.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// The definition as loops. Tests compare the tuned kernels with it.
namespace plain {
template <class T, class I>
void spmm(const Csr<T, I>& A, const T* X, int64_t ldx, int64_t width, T* Y) {
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t h = 0; h < A.heads; ++h)
      for (int64_t c = 0; c < width; ++c) {
        Sum<T> sum = 0;
        for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
          sum += A.value(p, h) * static_cast<Sum<T>>(X[A.indices[p] * ldx + h * width + c]);
        Y[(i * A.heads + h) * width + c] = static_cast<T>(sum);
      }
}
}  // namespace plain

// y[i] = Σ_p values[p] x[indices[p]] for the rows begin … end - 1.
template <bool permuted, class T, class I>
void spmv_range(const Csr<T, I>& A, int64_t begin, int64_t end, const T* x, int64_t ldx, T* y) {
  int64_t p = A.indptr[begin];
  for (int64_t i = begin; i < end; ++i) {
    Sum<T> sum = 0;
    for (const int64_t stop = A.indptr[i + 1]; p < stop; ++p)
      sum += static_cast<Sum<T>>(A.values[permuted ? A.perm[p] : p]) * static_cast<Sum<T>>(x[A.indices[p] * ldx]);
    y[i] = static_cast<T>(sum);
  }
}

// y += Aᵀ x for the rows begin … end - 1 of A.
template <class T, class I>
void spmv_scatter(const Csr<T, I>& A, int64_t begin, int64_t end, const T* x, int64_t ldx, T* y) {
  int64_t p = A.indptr[begin];
  for (int64_t i = begin; i < end; ++i) {
    const T a = x[i * ldx];
    for (const int64_t stop = A.indptr[i + 1]; p < stop; ++p) y[A.indices[p]] += A.values[p] * a;
  }
}

// `vectors` registers of columns of one row of Y: Y[i, h, 0 : vectors · lanes]. X and y point at their first column.
template <int lanes, int vectors, bool far, bool streamed, class T, class I>
[[gnu::always_inline]] inline void spmm_tile(const Csr<T, I>& A, int64_t i, int64_t h, const T* X, int64_t ldx, T* y) {
  Vec<Sum<T>, lanes> sum[vectors] = {}, x;
  for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
    if constexpr (far) {
      const int64_t soon = std::min(p + entries_ahead, A.nnz - 1);
      prefetch(X + A.indices[soon] * ldx, vectors * lanes);
      if (A.perm) __builtin_prefetch(A.values + A.perm[soon] * A.heads);
    }
    // Of a single column the compiler could multiply several entries at once and add them after, rounded twice, where
    // border.h fuses both. Nothing that it may move into vectors goes past this.
    if constexpr (lanes == 1) asm volatile("");
    const Sum<T> a = A.value(p, h);
    const T* row = X + A.indices[p] * ldx;
    for (int k = 0; k < vectors; ++k) {
      load<lanes>(row + k * lanes, x);
      sum[k] += a * x;
    }
  }
  for (int k = 0; k < vectors; ++k)
    if constexpr (streamed)
      stream<lanes>(sum[k], y + k * lanes);
    else
      store<lanes>(sum[k], y + k * lanes);
}

// One row of Y for one head, at least `lanes` wide: the widest tiles first; a remainder is covered by a last tile that
// overlaps its neighbour. Rows narrower than a register are less than two tiles wide.
template <int lanes, bool narrow, bool far, bool streamed, class T, class I>
[[gnu::always_inline]] inline void spmm_row(const Csr<T, I>& A, int64_t i, int64_t h, const T* X, int64_t ldx,
                                            int64_t width, T* y) {
  int64_t c = 0;
  if constexpr (!narrow) {
    for (; c + 8 * lanes <= width; c += 8 * lanes) spmm_tile<lanes, 8, far, streamed>(A, i, h, X + c, ldx, y + c);
    if (c + 4 * lanes <= width) spmm_tile<lanes, 4, far, streamed>(A, i, h, X + c, ldx, y + c), c += 4 * lanes;
    if (c + 2 * lanes <= width) spmm_tile<lanes, 2, far, streamed>(A, i, h, X + c, ldx, y + c), c += 2 * lanes;
  }
  if (c + lanes <= width) spmm_tile<lanes, 1, far, streamed>(A, i, h, X + c, ldx, y + c), c += lanes;
  if (c < width) c = width - lanes, spmm_tile<lanes, 1, far, streamed>(A, i, h, X + c, ldx, y + c);
}

template <int bytes, bool far, bool streamed, class T, class I>
[[gnu::always_inline]] inline void spmm_rows(const Csr<T, I>& A, int64_t begin, int64_t end, const T* X, int64_t ldx,
                                             int64_t width, T* Y) {
  constexpr int most = bytes / sizeof(Sum<T>);
  with_lanes<most>(width, [&]<int lanes> {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t h = 0; h < A.heads; ++h)
        spmm_row<lanes, (lanes < most), far, streamed>(A, i, h, X + h * width, ldx, width,
                                                       Y + (i * A.heads + h) * width);
  });
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/spmm.cu. scratch: (piece_places(nnz), heads, width).
template <class T, class I>
[[gnu::weak]] void spmm(Cuda, const Csr<T, I>& A, const T* X, int64_t ldx, int64_t width, T* Y, Sum<T>* scratch);

// One matrix times one vector, for the rows begin … end - 1.
template <bool permuted, class T, class I>
void spmv(const Csr<T, I>& A, int64_t begin, int64_t end, const T* x, int64_t ldx, T* y) {
  const auto plain = [&](int64_t from, int64_t to) { spmv_range<permuted>(A, from, to, x, ldx, y); };
  if (A.run_count > 0 && ldx == 1)
    spmm_runs<1, permuted>(A, begin, end, x, y, plain);
  else
    plain(begin, end);
}

// The same with two or four columns: tiles so narrow wait for their indices, too.
template <bool permuted, int width, class T, class I>
void spmm_narrow(const Csr<T, I>& A, int64_t begin, int64_t end, const T* X, T* Y) {
  simd_narrow([&]<int bytes> {
    spmm_runs<width, permuted>(A, begin, end, X, Y, [&](int64_t from, int64_t to) GOSSAMER_INLINED {
      spmm_rows<bytes, false, false>(A, from, to, X, width, width, Y);
    });
  });
}

template <Host E, class T, class I>
void spmm(const E& exec, const Csr<T, I>& A, const T* X, int64_t ldx, int64_t width, T* Y) {
  // Rows of X that follow each other come unasked as long as they are short.
  const bool is_long = A.heads * width * static_cast<int64_t>(sizeof(T)) >= 256;
  const bool far = is_far<T>(A.cols * ldx) && (is_long || !rows_follow(A));
  const bool stream = streams<T>(Y, A.rows * A.heads * width, width);
  for_each_row_range(exec, A, A.heads * width, [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    if (A.heads * width == 1) return (A.perm ? spmv<true, T, I> : spmv<false, T, I>)(A, begin, end, X, ldx, Y);
    if constexpr (std::same_as<T, Sum<T>>)
      if (A.run_count > 0 && A.heads == 1 && ldx == width && (width == 2 || width == 4)) {
        const auto narrow = width == 2 ? (A.perm ? spmm_narrow<true, 2, T, I> : spmm_narrow<false, 2, T, I>)
                                       : (A.perm ? spmm_narrow<true, 4, T, I> : spmm_narrow<false, 4, T, I>);
        return narrow(A, begin, end, X, Y);
      }
    simd([&]<int bytes> {
      if (stream)
        spmm_rows<bytes, true, true>(A, begin, end, X, ldx, width, Y), streamed();
      else if (far)
        spmm_rows<bytes, true, false>(A, begin, end, X, ldx, width, Y);
      else
        spmm_rows<bytes, false, false>(A, begin, end, X, ldx, width, Y);
    });
  });
}

// Into how many parts the rows of A are cut for spmv_transposed; 1: it is not worth it. It depends on A alone, and each
// part beyond the first costs a vector of A.cols numbers, cleared, filled and added: as much as two or three entries of
// a column.
template <class T, class I>
int64_t scatter_parts(const Csr<T, I>& A) {
  const int64_t in_a_column = A.nnz / std::max<int64_t>(A.cols, 1);
  if (!is_far<T>(A.nnz) || in_a_column < 6) return 1;
  return in_a_column < 28 ? 2 : 4;
}

// y = Aᵀ x for one matrix and one vector, without the transposed pattern: parts of A add what they have to a vector of
// their own, and the vectors are added in order. A's values are read where they lie; through a permutation they would
// cost a cache miss each. The parts are A's, not the threads', so the result is the same for every number of threads.
// sums: (scatter_parts(A) - 1, A.cols), scratch.
template <Host E, class T, class I>
void spmv_transposed(const E& exec, const Csr<T, I>& A, const T* x, int64_t ldx, T* y, T* sums) {
  const int64_t parts = scatter_parts(A);
  exec.parallel_for(parts, [&](int64_t k) {
    T* sum = k == 0 ? y : sums + (k - 1) * A.cols;
    std::fill(sum, sum + A.cols, T{0});
    const RowRange rows = row_range(A, k, parts);
    spmv_scatter(A, rows.begin, rows.end, x, ldx, sum);
  });
  const int64_t pieces = std::clamp<int64_t>(A.cols / 32768, 1, exec.threads());
  exec.parallel_for(pieces, [&](int64_t n) {
    for (int64_t k = 0; k + 1 < parts; ++k)
      for (int64_t j = A.cols * n / pieces; j < A.cols * (n + 1) / pieces; ++j) y[j] += sums[k * A.cols + j];
  });
}

// Under Pool, compiled once: src/cpu/spmm.cpp.
#define GOSSAMER_SPMM(T, I, ...) \
  __VA_ARGS__ template void spmm(const Pool&, const Csr<T, I>&, const T*, int64_t, int64_t, T*);
#define GOSSAMER_SPMV_TRANSPOSED(T, I, ...) \
  __VA_ARGS__ template void spmv_transposed(const Pool&, const Csr<T, I>&, const T*, int64_t, T*, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SPMM, extern)
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_SPMV_TRANSPOSED, extern)
#endif

}  // namespace gossamer::kernels
