// SPDX-License-Identifier: BSD-3-Clause
// The place of the largest number of each row on a CUDA device. The contract, and the loop over a row, are those of
// gossamer/argmax.h. A thread owns one row of one head.
#pragma once
#include <gossamer/kernels/argmax.h>
#include "warp.cuh"

namespace gossamer::kernels {

template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    argmax_rows(Csr<T, I> A, bool stored, int64_t* __restrict__ at) {
  for (int64_t job = device::thread(); job < A.rows * A.heads; job += device::threads())
    at[job] = argmax_row(A, job / A.heads, job % A.heads, stored);
}

}  // namespace gossamer::kernels
