// SPDX-License-Identifier: BSD-3-Clause
// Chooses the layout of lanes for Y = A X and launches it; the kernels are in spmm.cuh.
#include <gossamer/kernels/spmm.h>

#include "spmm.cuh"

namespace gossamer::kernels {

template <int lanes, class T, class I>
static void launch_rows(Cuda exec, const Csr<T, I>& A, const T* X, int64_t ldx, T* Y) {
  device::launch(exec, spmv_rows<lanes, T, I>, device::blocks_for(A.rows * lanes), device::block_threads, A, X, ldx, Y);
}

template <int lanes, int columns, class T, class I>
static void launch_tiles(Cuda exec, const Csr<T, I>& A, const T* X, int64_t ldx, int64_t width, T* Y) {
  const int64_t tiles = (A.heads * width + lanes * columns - 1) / (lanes * columns);
  device::launch_warps(exec, spmm_tiles<lanes, columns, T, I>, A.rows * tiles, A, X, ldx, width, Y);
}

template <class T, class I>
void spmm(Cuda exec, const Csr<T, I>& A, const T* X, int64_t ldx, int64_t width, T* Y) {
  const int64_t total = A.heads * width;
  if (A.rows == 0 || total == 0) return;
  if (total == 1) {  // about four entries a lane; the mean is all that is known without reading the pattern
    if (A.nnz <= 8 * A.rows) return launch_rows<2>(exec, A, X, ldx, Y);
    if (A.nnz <= 32 * A.rows) return launch_rows<8>(exec, A, X, ldx, Y);
    return launch_rows<32>(exec, A, X, ldx, Y);
  }
  if (total <= 4) return launch_tiles<4, 1>(exec, A, X, ldx, width, Y);
  if (total <= 8) return launch_tiles<8, 1>(exec, A, X, ldx, width, Y);
  if (total <= 16) return launch_tiles<16, 1>(exec, A, X, ldx, width, Y);
  if (total <= 32) return launch_tiles<32, 1>(exec, A, X, ldx, width, Y);
  if (total <= 64) return launch_tiles<32, 2>(exec, A, X, ldx, width, Y);
  return launch_tiles<32, 4>(exec, A, X, ldx, width, Y);
}

#define INSTANTIATE(T, I) template void spmm(Cuda, const Csr<T, I>&, const T*, int64_t, int64_t, T*);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
