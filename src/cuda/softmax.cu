// SPDX-License-Identifier: BSD-3-Clause
// Launches the softmax of each row; the kernel is in softmax.cuh.
#include <gossamer/kernels/softmax.h>

#include "softmax.cuh"

namespace gossamer::kernels {

template <class T, class I>
void row_softmax(Cuda exec, const Csr<T, I>& A, T* P) {
  device::launch_warps(exec, softmax_rows<T, I>, A.rows * A.heads, A, P);
}

#define INSTANTIATE(T, I) template void row_softmax(Cuda, const Csr<T, I>&, T*);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
