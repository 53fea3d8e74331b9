// SPDX-License-Identifier: BSD-3-Clause
// The softmax of each row on a CUDA device. The contract is that of gossamer/softmax.h:
//
//   P[p, h] = exp(values[p, h] - m) / Σ_q exp(values[q, h] - m),        m = max_q values[q, h],  p, q over row i
//
// A warp owns one row of one head: lane k takes the entries k, k + 32, …; maximum and sum meet in shuffle trees. Each
// element of P has one writer and one order of addition: no atomics, the same bits every time.
#pragma once
#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/half.h>
#include "warp.cuh"

namespace gossamer::kernels {

template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    softmax_rows(Csr<T, I> A, T* __restrict__ P) {
  for (int64_t job = device::warp(); job < A.rows * A.heads; job += device::warps()) {
    const int64_t i = job / A.heads, h = job % A.heads, begin = A.indptr[i] + device::lane(), end = A.indptr[i + 1];
    Sum<T> top = -INFINITY, sum = 0;
    for (int64_t p = begin; p < end; p += device::warp_lanes) {
      const Sum<T> v = static_cast<Sum<T>>(A.values[p * A.heads + h]);
      top = v > top ? v : top;
    }
    top = device::max_lanes(top);
    for (int64_t p = begin; p < end; p += device::warp_lanes)
      sum += exp(static_cast<Sum<T>>(A.values[p * A.heads + h]) - top);
    sum = device::sum_lanes<device::warp_lanes, 1>(sum);
    for (int64_t p = begin; p < end; p += device::warp_lanes)
      P[p * A.heads + h] = static_cast<T>(exp(static_cast<Sum<T>>(A.values[p * A.heads + h]) - top) / sum);
  }
}

}  // namespace gossamer::kernels
