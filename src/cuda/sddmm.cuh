// SPDX-License-Identifier: BSD-3-Clause
// U Vᵀ on the entries of a pattern, on a CUDA device. The contract is that of gossamer/sddmm.h:
//
//   values[p, h] = Σ_c U[i, h, c] V[indices[p], h, c]        p over row i
//
// Entries are independent, so the work is cut by entries and not by rows: a long row is shared by many warps, and an
// empty one costs nothing. Each element of `values` has one writer and one order of addition.
#pragma once
#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/half.h>
#include "pieces.cuh"

namespace gossamer::kernels {

inline constexpr int64_t sddmm_chunk = 64;  // entries a warp owns: enough to meet a row of U more than once

// A few columns: a thread owns values[p, h] and adds its columns in order.
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    sddmm_threads(PatternView<I> A, int64_t heads, const T* __restrict__ U, int64_t ldu, const T* __restrict__ V,
                  int64_t ldv, int64_t width, T* __restrict__ values) {
  for (int64_t q = device::thread(); q < A.nnz * heads; q += device::threads()) {
    const int64_t p = q / heads, h = q % heads;
    const T* u = U + device::row_of(A, p) * ldu + h * width;
    const T* v = V + A.indices[p] * ldv + h * width;
    Sum<T> sum = 0;
    for (int64_t c = 0; c < width; ++c) sum += static_cast<Sum<T>>(u[c]) * static_cast<Sum<T>>(v[c]);
    values[q] = static_cast<T>(sum);
  }
}

// The entries begin … end - 1, all of one row, for one head: u is that row of U; V and values point at the head. The
// warp is made of 32 / lanes groups; a group owns an entry, its lanes take columns side by side, a shuffle tree adds
// them and the group's first lane writes. The first lanes · columns columns of u stay in registers for all entries;
// those of a wider row come from the cache.
template <int lanes, int columns, class T, class I>
__device__ inline void sddmm_row(const PatternView<I>& A, int64_t begin, int64_t end, const T* __restrict__ u,
                                 const T* __restrict__ V, int64_t ldv, int64_t width, T* __restrict__ values,
                                 int64_t heads) {
  constexpr int groups = device::warp_lanes / lanes;
  const int lane = device::lane() % lanes;
  Sum<T> held[columns] = {};
  for (int k = 0; k < columns; ++k)
    if (lane + k * lanes < width) held[k] = static_cast<Sum<T>>(u[lane + k * lanes]);
  for (int64_t first = begin; first < end; first += groups) {
    const int64_t p = first + device::lane() / lanes;
    Sum<T> sum = 0;
    if (p < end) {
      const T* v = V + A.indices[p] * ldv;
      for (int k = 0; k < columns; ++k)
        if (lane + k * lanes < width) sum += held[k] * static_cast<Sum<T>>(v[lane + k * lanes]);
      for (int64_t c = lane + lanes * columns; c < width; c += lanes)
        sum += static_cast<Sum<T>>(u[c]) * static_cast<Sum<T>>(v[c]);
    }
    sum = device::sum_lanes<lanes, 1>(sum);
    if (p < end && lane == 0) values[p * heads] = static_cast<T>(sum);
  }
}

// A warp owns the values of sddmm_chunk neighbouring entries for one head and goes through them row by row.
template <int lanes, int columns, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    sddmm_chunks(PatternView<I> A, int64_t heads, const T* __restrict__ U, int64_t ldu, const T* __restrict__ V,
                 int64_t ldv, int64_t width, T* __restrict__ values) {
  const int64_t chunks = (A.nnz + sddmm_chunk - 1) / sddmm_chunk;
  for (int64_t job = device::warp(); job < chunks * heads; job += device::warps()) {
    const int64_t h = job % heads, column = h * width;
    int64_t begin = job / heads * sddmm_chunk;
    const int64_t end = min(begin + sddmm_chunk, A.nnz);
    int64_t i = device::row_of(A, begin);
    while (begin < end) {
      if (A.indptr[i + 1] <= begin) i = device::row_of(A, begin);  // over a gap of empty rows, however wide
      const int64_t stop = min(end, static_cast<int64_t>(A.indptr[i + 1]));
      sddmm_row<lanes, columns>(A, begin, stop, U + i * ldu + column, V + column, ldv, width, values + h, heads);
      begin = stop;
      ++i;
    }
  }
}

}  // namespace gossamer::kernels
