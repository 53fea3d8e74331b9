// SPDX-License-Identifier: BSD-3-Clause
// Launches the search for each row's largest number; the kernels are in argmax.cuh.
#include "argmax.cuh"

namespace gossamer::kernels {

template <class T, class I>
void row_argmax(Cuda exec, const Csr<T, I>& A, bool stored, int64_t* at, int64_t* scratch) {
  const int64_t pieces = piece_places(A.nnz) * A.heads;
  device::launch(exec, argmax_rows<T, I>, device::blocks_for(A.rows * A.heads), device::block_threads, A, stored, at);
  device::launch_warps(exec, argmax_pieces<T, I>, pieces, A, scratch);
  device::launch(exec, argmax_long_rows<T, I>, device::blocks_for(pieces), device::block_threads, A, stored, scratch,
                 at);
}

#define INSTANTIATE(T, I) template void row_argmax(Cuda, const Csr<T, I>&, bool, int64_t*, int64_t*);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
