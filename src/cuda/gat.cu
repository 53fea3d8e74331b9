// SPDX-License-Identifier: BSD-3-Clause
// Launches graph attention and its gradients; the kernels are in gat.cuh.
#include "gat.cuh"

namespace gossamer::kernels {

template <class T, class I>
void gat(Cuda exec, const Gat<T, I>& in, T* Z, Sum<T>* lse) {
  device::with_layout(in.width, [&]<int lanes, int columns> {
    const int64_t warps = in.A.rows * in.heads * device::tiles_of(in.width, lanes * columns);
    device::launch_warps(exec, gat_tiles<lanes, columns, T, I>, warps, in, Z, lse);
  });
}

template <class T, class I>
void gat_backward(Cuda exec, const Gat<T, I>& in, const PatternView<I>& At, const I* perm, const T* G, const T* Z,
                  const Sum<T>* lse, Sum<T>* scratch, const GatGradients<T>& d) {
  device::with_layout(in.width, [&]<int lanes, int columns> {
    const int64_t cols = At.rows * in.heads * device::tiles_of(in.width, lanes * columns);
    device::launch_warps(exec, gat_row_gradients<lanes, T, I>, in.A.rows * in.heads, in, G, Z, lse, scratch, d);
    device::launch_warps(exec, gat_col_gradients<lanes, columns, T, I>, cols, in, At, perm, G, scratch, d);
  });
}

#define INSTANTIATE(T, I)                                                                                 \
  template void gat(Cuda, const Gat<T, I>&, T*, Sum<T>*);                                                 \
  template void gat_backward(Cuda, const Gat<T, I>&, const PatternView<I>&, const I*, const T*, const T*, \
                             const Sum<T>*, Sum<T>*, const GatGradients<T>&);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
