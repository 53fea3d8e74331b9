// SPDX-License-Identifier: BSD-3-Clause
// Sparse times sparse on a given pattern C, on a CUDA device. The contract is that of gossamer/spgemm.h; Aᵀ B is the
// first form with Aᵀ for A, whose values are read through perm.
//
// A warp owns a row of C. Products are added in the order of the inner index, each element by one lane at a time: no
// atomics, the same bits every time. What is added lies in shared memory, or, for rows that do not fit there, and then
// in a type that loses nothing, in the scratch.
#pragma once
#include <gossamer/kernels/spgemm.h>
#include "warp.cuh"

namespace gossamer::kernels {

inline constexpr int row_capacity = 128;  // entries of a row of C in shared memory

// The place of `column` among the ascending columns first … last - 1, or last.
template <class I>
__device__ inline int64_t find_column(const I* columns, int64_t first, int64_t last, I column) {
  int64_t low = first, high = last;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (columns[middle] < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low < last && columns[low] == column ? low : last;
}

// C[i, :] = Σ_k A[i, k] B[k, :], on C's columns first … first + count - 1, which `columns` points at; `sums` is theirs.
// The lanes share the entries of row k of B, whose columns differ: no two lanes add to one sum. The next k waits.
template <class T, class I>
__device__ inline void add_products(const Csr<T, I>& A, const Csr<T, I>& B, int64_t i, const I* columns, int64_t count,
                                    Sum<T>* sums) {
  for (int64_t e = device::lane(); e < count; e += device::warp_lanes) sums[e] = 0;
  for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
    __syncwarp();
    const int64_t k = A.indices[p];
    const Sum<T> a = A.value(p);
    for (int64_t q = B.indptr[k] + device::lane(); q < B.indptr[k + 1]; q += device::warp_lanes)
      if (const int64_t at = find_column(columns, 0, count, B.indices[q]); at < count) sums[at] += a * B.value(q);
  }
  __syncwarp();
}

template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    spgemm_rows(Csr<T, I> A, Csr<T, I> B, PatternView<I> C, T* __restrict__ values, Sum<T>* scratch) {
  constexpr int warps = device::block_threads / device::warp_lanes;
  GOSSAMER_SHARED(I, all_columns, warps * row_capacity);
  GOSSAMER_SHARED(Sum<T>, all_sums, warps * row_capacity);
  const int own = static_cast<int>(threadIdx.x) / device::warp_lanes * row_capacity;
  for (int64_t i = device::warp(); i < C.rows; i += device::warps()) {
    const int64_t first = C.indptr[i], count = C.indptr[i + 1] - first;
    const bool fits = count <= row_capacity;
    Sum<T>* sums = fits ? all_sums + own : scratch + first;
    const I* columns = fits ? all_columns + own : C.indices + first;
    __syncwarp();  // the row before has been read
    for (int64_t e = device::lane(); fits && e < count; e += device::warp_lanes)
      all_columns[own + e] = C.indices[first + e];
    __syncwarp();
    add_products(A, B, i, columns, count, sums);
    for (int64_t e = device::lane(); e < count; e += device::warp_lanes) values[first + e] = static_cast<T>(sums[e]);
  }
}

// C[i, k] = A[i, :] · B[k, :]: the lanes look the entries of row k of B up in row i of A, and a shuffle tree adds.
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    spgemm_dots(Csr<T, I> A, Csr<T, I> B, PatternView<I> C, T* __restrict__ values) {
  for (int64_t i = device::warp(); i < C.rows; i += device::warps()) {
    const int64_t begin = A.indptr[i], end = A.indptr[i + 1];
    for (int64_t r = C.indptr[i]; r < C.indptr[i + 1]; ++r) {
      const int64_t k = C.indices[r];
      Sum<T> sum = 0;
      for (int64_t q = B.indptr[k] + device::lane(); q < B.indptr[k + 1]; q += device::warp_lanes)
        if (const int64_t at = find_column(A.indices, begin, end, B.indices[q]); at < end)
          sum += A.value(at) * B.value(q);
      sum = device::sum_lanes<device::warp_lanes, 1>(sum);
      if (device::lane() == 0) values[r] = static_cast<T>(sum);
    }
  }
}

}  // namespace gossamer::kernels
