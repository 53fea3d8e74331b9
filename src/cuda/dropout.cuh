// SPDX-License-Identifier: BSD-3-Clause
// The factors of a dropout on a CUDA device, a thread a number. The contract is that of gossamer/dropout.h.
#pragma once
#include <gossamer/kernels/dropout.h>
#include "warp.cuh"

namespace gossamer::kernels {

template <class S>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    dropout_factors_of(Dropout dropout, int64_t n, int64_t heads, S* __restrict__ factors) {
  for (int64_t k = device::thread(); k < n; k += device::threads())
    factors[k] = dropout.factor<S>(dropout.keys ? dropout.first(k / heads, heads) + k % heads : k);
}

}  // namespace gossamer::kernels
