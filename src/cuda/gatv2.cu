// SPDX-License-Identifier: BSD-3-Clause
// Launches graph attention of the second kind and its gradients; the kernels are in gatv2.cuh.
#include "gatv2.cuh"

namespace gossamer::kernels {

template <class T, class I>
void gatv2(Cuda exec, const Gatv2<T, I>& in, T* Z, Sum<T>* lse) {
  device::with_layout(in.width, [&]<int lanes, int columns> {
    const int64_t warps = in.A.rows * in.heads * device::tiles_of(in.width, lanes * columns);
    device::launch_warps(exec, gatv2_tiles<lanes, columns, T, I>, warps, in, Z, lse);
  });
}

template <class T, class I>
void gatv2_backward(Cuda exec, const Gatv2<T, I>& in, const PatternView<I>& At, const I* perm, const T* G, const T* Z,
                    const Sum<T>* lse, Sum<T>* scratch, const Gatv2Gradients<T>& d) {
  const int64_t columns_of_all = in.heads * in.width, parts = gatv2_cuda_parts(in.A.rows);
  Sum<T>* d_att = scratch + 2 * in.A.nnz * in.heads;
  device::with_layout(in.width, [&]<int lanes, int columns> {
    const int64_t tiles = in.heads * device::tiles_of(in.width, lanes * columns);
    device::launch_warps(exec, gatv2_entry_gradients<lanes, T, I>, in.A.rows * in.heads, in, G, Z, lse, scratch);
    device::launch_warps(exec, gatv2_row_gradients<lanes, columns, T, I>, parts * tiles, in, parts, scratch, d, d_att);
    device::launch_warps(exec, gatv2_sum_parts<T>, columns_of_all, columns_of_all, parts, d_att, d.att);
    device::launch_warps(exec, gatv2_col_gradients<lanes, columns, T, I>, At.rows * tiles, in, At, perm, G, scratch,
                         d.x_src);
  });
}

#define INSTANTIATE(T, I)                                                                                     \
  template void gatv2(Cuda, const Gatv2<T, I>&, T*, Sum<T>*);                                                 \
  template void gatv2_backward(Cuda, const Gatv2<T, I>&, const PatternView<I>&, const I*, const T*, const T*, \
                               const Sum<T>*, Sum<T>*, const Gatv2Gradients<T>&);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
