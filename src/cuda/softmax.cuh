// SPDX-License-Identifier: BSD-3-Clause
// The softmax of each row on a CUDA device. The contract is that of gossamer/softmax.h:
//
//   P[p, h] = exp(values[p, h] - m) / Σ_q exp(values[q, h] - m),        m = max_q values[q, h],  p, q over row i
//
// A warp owns a run of one head, a row or a piece of a long one: lane k takes the entries k, k + 32, …; maximum and sum
// meet in shuffle trees. Each element of P has one writer and one order of addition: no atomics, the same bits every
// time.
#pragma once
#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/half.h>
#include "online_softmax.cuh"

namespace gossamer::kernels {

// P of the run, given m = `top` and the sum.
template <class T, class I>
__device__ inline void write_softmax(const Csr<T, I>& A, const device::Run& run, int64_t h, Sum<T> top, Sum<T> sum,
                                     T* __restrict__ P) {
  for (int64_t p = run.begin + device::lane(); p < run.end; p += device::warp_lanes)
    P[p * A.heads + h] = static_cast<T>(exp(static_cast<Sum<T>>(A.values[p * A.heads + h]) - top) / sum);
}

// P of short rows; of pieces, their own maximum and sum: partial is (places, heads, 2).
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    softmax_rows(Csr<T, I> A, T* __restrict__ P, Sum<T>* __restrict__ partial) {
  for (int64_t job = device::warp(); job < device::runs_of(A) * A.heads; job += device::warps()) {
    const device::Run run = device::run_at(A, job / A.heads);
    const int64_t h = job % A.heads, begin = run.begin + device::lane();
    if (!run.any()) continue;
    Sum<T> top = -INFINITY, sum = 0;
    for (int64_t p = begin; p < run.end; p += device::warp_lanes) {
      const Sum<T> v = static_cast<Sum<T>>(A.values[p * A.heads + h]);
      top = v > top ? v : top;
    }
    top = device::max_lanes(top);
    const Sum<T> shift = run.whole() ? top : device::finite(top);
    for (int64_t p = begin; p < run.end; p += device::warp_lanes)
      sum += exp(static_cast<Sum<T>>(A.values[p * A.heads + h]) - shift);
    sum = device::sum_lanes<device::warp_lanes, 1>(sum);
    if (run.whole())
      write_softmax(A, run, h, top, sum, P);
    else if (device::lane() == 0)
      device::Weights<Sum<T>>{top, sum}.write(partial + 2 * (run.place * A.heads + h));
  }
}

// P of the pieces. Each puts together anew what all pieces of its row have found, which is short.
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    softmax_pieces(Csr<T, I> A, const Sum<T>* __restrict__ partial, T* __restrict__ P) {
  for (int64_t job = device::warp(); job < piece_places(A.nnz) * A.heads; job += device::warps()) {
    const device::Run piece = device::piece_at(A, job / A.heads);
    const int64_t h = job % A.heads, first = piece.place - piece.number;
    if (!piece.any()) continue;
    const auto all = device::weights_of_row(piece.count, partial + 2 * (first * A.heads + h), 2 * A.heads);
    write_softmax(A, piece, h, all.top, all.total, P);
  }
}

}  // namespace gossamer::kernels
