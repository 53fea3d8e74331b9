// SPDX-License-Identifier: BSD-3-Clause
// L D U and L D Lᵀ along a frozen pattern on a CUDA device. The contract is that of gossamer/factor.h:
//
//   w_ij = a_ij - Σ_k w_ik u_kj,   or   a_ij - Σ_k w_ik l_jk        l_ij = w_ij / d_j     d_i = w_ii     u_ij = w_ij /
//   d_i
//
// A warp owns row i, and waits for the rows its row names, as in triangular.cuh: rows are taken by tickets, in
// ascending order, so that each row that is waited for has a warp. What others made is read after its flag; what the
// warp makes is its own row. Each number has one order of additions: the same bits every time.
#pragma once
#include <gossamer/kernels/factor.h>
#include "triangular.cuh"

namespace gossamer::kernels {

// Lane 0 says that row i is done, after all lanes have written theirs.
__device__ inline void row_done(const FactorProgress& progress, int64_t i) {
  __syncwarp();
  if (device::lane() == 0) device::store_release(progress.ready + i, 1);
}

// With k ascending, w_ij -= w_ik u_kj for all j after k in row k. The lanes share these j, which differ, and the heads.
template <class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    lu_rows(PatternView<I> F, const I* __restrict__ diagonal, int64_t heads, double* values, FactorProgress progress) {
  for (int64_t i = next_ticket(progress.tickets); i < F.rows; i = next_ticket(progress.tickets)) {
    const int64_t end = F.indptr[i + 1], own = diagonal[i];
    for (int64_t p = F.indptr[i]; p < own; ++p) {
      const int64_t k = F.indices[p], pivot = diagonal[k];
      wait_for(progress.ready + k);
      for (int64_t e = (pivot + 1) * heads + device::lane(); e < F.indptr[k + 1] * heads; e += device::warp_lanes) {
        const int64_t q = heads == 1 ? e : e / heads, h = e - q * heads;  // 64-bit division is slow
        values[place_in_row(F, i, p, k, pivot, q) * heads + h] -= values[p * heads + h] * values[e];
      }
      __syncwarp();  // w_ik has been read, and the w_ij are there for the next k
      for (int64_t h = device::lane(); h < heads; h += device::warp_lanes)
        values[p * heads + h] /= values[pivot * heads + h];
    }
    for (int64_t e = (own + 1) * heads + device::lane(); e < end * heads; e += device::warp_lanes)
      values[e] /= values[own * heads + (heads == 1 ? 0 : e % heads)];
    row_done(progress, i);
  }
}

// Σ_k w_ik l_jk, over the entries of row j before its diagonal that row i has among begin … end - 1. Called by the
// whole warp, whose lanes share the entries; a shuffle tree adds what they found.
template <class I>
__device__ inline double dot_of_rows(const PatternView<I>& F, int64_t j, int64_t begin, int64_t end, int64_t heads,
                                     int64_t h, const double* values) {
  double sum = 0;
  for (int64_t q = F.indptr[j] + device::lane(); q < F.indptr[j + 1] - 1; q += device::warp_lanes)
    if (const int64_t at = place_of(F.indices, begin, end, F.indices[q]); at < end && F.indices[at] == F.indices[q])
      sum += values[at * heads + h] * values[q * heads + h];
  return device::sum_lanes<device::warp_lanes, 1>(sum);
}

template <class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    ldlt_rows(PatternView<I> F, int64_t heads, double* values, FactorProgress progress) {
  for (int64_t i = next_ticket(progress.tickets); i < F.rows; i = next_ticket(progress.tickets)) {
    const int64_t begin = F.indptr[i], own = F.indptr[i + 1] - 1;
    for (int64_t p = begin; p < own; ++p) {
      const int64_t j = F.indices[p];
      wait_for(progress.ready + j);
      for (int64_t h = 0; h < heads; ++h) {
        const double sum = dot_of_rows(F, j, begin, p, heads, h, values);
        if (device::lane() == 0) values[p * heads + h] -= sum;
      }
      __syncwarp();  // w_ij is there for the next j
    }
    for (int64_t h = 0; h < heads; ++h) {
      double sum = 0;
      for (int64_t p = begin + device::lane(); p < own; p += device::warp_lanes) {
        const double w = values[p * heads + h];
        values[p * heads + h] = w / values[(F.indptr[F.indices[p] + 1] - 1) * heads + h];
        sum += w * values[p * heads + h];
      }
      sum = device::sum_lanes<device::warp_lanes, 1>(sum);
      if (device::lane() == 0) values[own * heads + h] -= sum;
    }
    row_done(progress, i);
  }
}

}  // namespace gossamer::kernels
