// SPDX-License-Identifier: BSD-3-Clause
// Launches the softmax of each row; the kernel is in softmax.cuh.
#include "gossamer/softmax.h"

#include "instantiate.h"
#include "softmax.cuh"

namespace gossamer::kernels {

template <class T, class I>
void row_softmax(Cuda exec, const Csr<T, I>& A, T* P) {
  device::launch(exec, softmax_rows<T, I>, device::blocks_for(A.rows * A.heads * device::warp_lanes),
                 device::block_threads, A, P);
}

#define INSTANTIATE(T, I) template void row_softmax(Cuda, const Csr<T, I>&, T*);
FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
