// SPDX-License-Identifier: BSD-3-Clause
// The place of the largest number of each row on a CUDA device. The contract, and the loop over entries, are those of
// gossamer/argmax.h. A thread owns a short row of one head, a warp a piece of a long one (pieces.cuh).
#pragma once
#include <gossamer/kernels/argmax.h>
#include "pieces.cuh"

namespace gossamer::kernels {

template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    argmax_rows(Csr<T, I> A, bool stored, int64_t* __restrict__ at) {
  for (int64_t job = device::thread(); job < A.rows * A.heads; job += device::threads())
    if (device::short_row(A, job / A.heads).any()) at[job] = argmax_row(A, job / A.heads, job % A.heads, stored);
}

// The best entry of each piece: a lane looks at neighbours, and the earlier of two equals wins in the tree. best:
// (places, heads).
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    argmax_pieces(Csr<T, I> A, int64_t* __restrict__ best) {
  for (int64_t job = device::warp(); job < piece_places(A.nnz) * A.heads; job += device::warps()) {
    const device::Run piece = device::piece_at(A, job / A.heads);
    if (!piece.any()) continue;
    const int64_t h = job % A.heads, length = piece.end - piece.begin, lane = device::lane();
    int64_t mine = argmax_entries(A, piece.begin + length * lane / device::warp_lanes,
                                  piece.begin + length * (lane + 1) / device::warp_lanes, h);
    for (int d = 1; d < device::warp_lanes; d *= 2) {
      const int64_t next = __shfl_down_sync(device::full_warp, mine, d);
      mine = better_entry(A, h, mine, next);
    }
    if (lane == 0) best[job] = mine;
  }
}

// A thread owns a long row of one head: the best of its pieces, in their order.
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    argmax_long_rows(Csr<T, I> A, bool stored, const int64_t* __restrict__ best, int64_t* __restrict__ at) {
  for (int64_t job = device::thread(); job < piece_places(A.nnz) * A.heads; job += device::threads()) {
    const device::Run piece = device::piece_at(A, job / A.heads);
    if (!piece.first()) continue;
    const int64_t h = job % A.heads;
    int64_t all = A.nnz;
    for (int64_t n = 0; n < piece.count; ++n) all = better_entry(A, h, all, best[(piece.place + n) * A.heads + h]);
    at[piece.row * A.heads + h] = or_zero(A, piece.row, h, stored, all);
  }
}

}  // namespace gossamer::kernels
