// SPDX-License-Identifier: BSD-3-Clause
// Y = A X on a CUDA device. The contract is that of gossamer/spmm.h:
//
//   Y[i, h, :] = Σ_p values[p, h] X[indices[p], h, :]        p over row i
//
// A row of X or Y is read as heads · width flat columns, so narrow heads share a warp. Reads of X run along its rows,
// a warp's lanes side by side (coalesced). Each element of Y has one writer and one order of addition: no atomics,
// the same bits every time. The sums of the pieces of long rows (pieces.cuh) go to `partial`, one row of it a place,
// which a second pass adds up.
#pragma once
#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/half.h>
#include "pieces.cuh"

namespace gossamer::kernels {

// One column (SpMV). A group of `lanes` lanes owns row i: lane k adds the entries k, k + lanes, …, a shuffle tree adds
// the lanes, and the group's first lane writes y[i]. Short rows want small groups, or most lanes have nothing to read.
// A piece of a long row is shared by the whole warp.
template <int lanes, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    spmv_rows(Csr<T, I> A, const T* __restrict__ X, int64_t ldx, T* __restrict__ Y, Sum<T>* __restrict__ partial) {
  constexpr int rows = device::warp_lanes / lanes;  // of one warp
  const int64_t places = piece_places(A.nnz);
  for (int64_t job = device::warp(); job < places + (A.rows + rows - 1) / rows; job += device::warps()) {
    const int64_t i = (job - places) * rows + device::lane() / lanes;
    const bool piece = job < places;
    const device::Run run = piece ? device::piece_at(A, job) : i < A.rows ? device::short_row(A, i) : device::Run{};
    const int step = piece ? device::warp_lanes : lanes, lane = device::lane() % step;
    Sum<T> sum = 0;
    for (int64_t p = run.begin + lane; p < run.end; p += step)
      sum += A.value(p) * static_cast<Sum<T>>(X[A.indices[p] * ldx]);
    sum = piece ? device::sum_lanes<device::warp_lanes, 1>(sum) : device::sum_lanes<lanes, 1>(sum);
    if (!run.any() || lane > 0) continue;
    if (piece)
      partial[run.place] = sum;
    else
      Y[run.row] = static_cast<T>(sum);
  }
}

// The tile Y[i, left + k · lanes] for k < columns, where `left` is this lane's first flat column. A warp reads 32
// entries at once, one a lane, and hands them round by shuffles (Huang et al., "GE-SpMM", SC 2020). It is made of
// 32 / lanes groups, which take every (32 / lanes)-th entry; the groups' sums meet in a shuffle tree and group 0
// writes.
template <int lanes, int columns, class T, class I>
__device__ inline void spmm_tile(const Csr<T, I>& A, const device::Run& run, int64_t left, const T* __restrict__ X,
                                 int64_t ldx, int64_t width, T* __restrict__ Y, Sum<T>* __restrict__ partial) {
  constexpr int groups = device::warp_lanes / lanes;
  const int lane = device::lane(), group = lane / lanes;
  const int64_t total = A.heads * width;
  const bool one_head = A.heads == 1;
  int64_t head[columns];
  Sum<T> sum[columns] = {};
  for (int k = 0; k < columns; ++k) head[k] = one_head ? 0 : (left + k * lanes) / width;
  for (int64_t begin = run.begin; begin < run.end; begin += device::warp_lanes) {
    const int count = static_cast<int>(min(run.end - begin, static_cast<int64_t>(device::warp_lanes)));
    I column = 0, position = 0;
    Sum<T> value = 0;
    if (lane < count) {
      column = A.indices[begin + lane];
      position = A.perm ? A.perm[begin + lane] : static_cast<I>(begin + lane);
      if (one_head) value = static_cast<Sum<T>>(A.values[position]);
    }
    for (int step = 0; step < count; step += groups) {
      const int from = step + group;  // the lane that holds this group's entry
      const T* row = X + __shfl_sync(device::full_warp, column, from) * ldx;
      const Sum<T> a = one_head ? __shfl_sync(device::full_warp, value, from) : 0;
      const T* values = A.values;
      if (!one_head) values += __shfl_sync(device::full_warp, position, from) * A.heads;
      if (from >= count) continue;
      for (int k = 0; k < columns; ++k)
        if (const int64_t q = left + k * lanes; q < total)
          sum[k] += (one_head ? a : static_cast<Sum<T>>(values[head[k]])) * static_cast<Sum<T>>(row[q]);
    }
  }
  for (int k = 0; k < columns; ++k) {
    const int64_t q = left + k * lanes;
    sum[k] = device::sum_lanes<device::warp_lanes, lanes>(sum[k]);
    if (group > 0 || q >= total) continue;
    if (run.whole())
      Y[run.row * total + q] = static_cast<T>(sum[k]);
    else
      partial[run.place * total + q] = sum[k];
  }
}

// A warp owns one run and lanes · columns neighbouring flat columns of it. Warps side by side take the tiles of one
// run, so that its entries come from the cache.
template <int lanes, int columns, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    spmm_tiles(Csr<T, I> A, const T* __restrict__ X, int64_t ldx, int64_t width, T* __restrict__ Y,
               Sum<T>* __restrict__ partial) {
  constexpr int64_t tile = lanes * columns;
  const int64_t tiles = (A.heads * width + tile - 1) / tile;
  for (int64_t job = device::warp(); job < device::runs_of(A) * tiles; job += device::warps())
    if (const device::Run run = device::run_at(A, job / tiles); run.any())
      spmm_tile<lanes, columns>(A, run, job % tiles * tile + device::lane() % lanes, X, ldx, width, Y, partial);
}

}  // namespace gossamer::kernels
