// SPDX-License-Identifier: BSD-3-Clause
// Launches the softmax of each row; the kernels are in softmax.cuh.
#include <gossamer/kernels/softmax.h>

#include "softmax.cuh"

namespace gossamer::kernels {

template <class T, class I>
void row_softmax(Cuda exec, const Csr<T, I>& A, T* P, Sum<T>* scratch) {
  device::launch_warps(exec, softmax_rows<T, I>, device::runs_of(A) * A.heads, A, P, scratch);
  device::launch_warps(exec, softmax_pieces<T, I>, piece_places(A.nnz) * A.heads, A, scratch, P);
}

#define INSTANTIATE(T, I) template void row_softmax(Cuda, const Csr<T, I>&, T*, Sum<T>*);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
