// SPDX-License-Identifier: BSD-3-Clause
// Chooses the layout of lanes for U Vᵀ on a pattern and launches it; the kernels are in sddmm.cuh.
#include <gossamer/kernels/sddmm.h>

#include "sddmm.cuh"

namespace gossamer::kernels {

template <int lanes, int columns, class T, class I>
static void launch_chunks(Cuda exec, const PatternView<I>& A, int64_t heads, const T* U, int64_t ldu, const T* V,
                          int64_t ldv, int64_t width, T* values) {
  const int64_t warps = (A.nnz + sddmm_chunk - 1) / sddmm_chunk * heads;
  device::launch_warps(exec, sddmm_chunks<lanes, columns, T, I>, warps, A, heads, U, ldu, V, ldv, width, values);
}

template <class T, class I>
void sddmm(Cuda exec, const PatternView<I>& A, int64_t heads, const T* U, int64_t ldu, const T* V, int64_t ldv,
           int64_t width, T* values) {
  if (width <= 4)
    return device::launch(exec, sddmm_threads<T, I>, device::blocks_for(A.nnz * heads), device::block_threads, A, heads,
                          U, ldu, V, ldv, width, values);
  if (width <= 8) return launch_chunks<8, 1>(exec, A, heads, U, ldu, V, ldv, width, values);
  // Several columns a lane, rather than more lanes: 8 lanes fill a sector, and four entries share the shuffles of a
  // sum.
  if (width <= 16) return launch_chunks<8, 2>(exec, A, heads, U, ldu, V, ldv, width, values);
  if (width <= 32) return launch_chunks<8, 4>(exec, A, heads, U, ldu, V, ldv, width, values);
  if (width <= 64) return launch_chunks<16, 4>(exec, A, heads, U, ldu, V, ldv, width, values);
  return launch_chunks<32, 4>(exec, A, heads, U, ldu, V, ldv, width, values);
}

#define INSTANTIATE(T, I) \
  template void sddmm(Cuda, const PatternView<I>&, int64_t, const T*, int64_t, const T*, int64_t, int64_t, T*);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
