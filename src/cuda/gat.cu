// SPDX-License-Identifier: BSD-3-Clause
// Launches graph attention and its gradients; the kernels are in gat.cuh.
#include "gat.cuh"

namespace gossamer::kernels {

template <class T, class I>
void gat(Cuda exec, const Gat<T, I>& in, T* Z, Sum<T>* lse, Sum<T>* scratch) {
  device::with_layout(in.width, [&]<int lanes, int columns> {
    const int64_t warps = device::runs_of(in.A) * in.heads * device::tiles_of(in.width, lanes * columns);
    device::launch_warps(exec, gat_tiles<lanes, columns, T, I>, warps, in, Z, lse, scratch);
  });
  device::launch_attend_pieces(exec, in, scratch, Z, lse);
}

// Both second passes use one piece of scratch, one after the other.
template <class T, class I>
void gat_backward(Cuda exec, const Gat<T, I>& in, const PatternView<I>& At, const I* perm, const T* G, const T* Z,
                  const Sum<T>* lse, Sum<T>* scratch, const GatGradients<T>& d) {
  const int64_t heads = in.heads, rows = device::runs_of(in.A) * heads;
  Sum<T>* partial = scratch + 2 * in.A.nnz * heads;
  device::with_layout(in.width, [&]<int lanes, int columns> {
    const int64_t cols = device::runs_of(At) * heads * device::tiles_of(in.width, lanes * columns);
    device::launch_warps(exec, gat_row_gradients<lanes, T, I>, rows, in, G, Z, lse, scratch, d, partial);
    device::launch_add_pieces<T, I>(exec, in.A, heads, heads, partial, d.alpha_dst, nullptr);
    device::launch_warps(exec, gat_col_gradients<lanes, columns, T, I>, cols, in, At, perm, G, scratch, d, partial);
    device::launch_add_pieces<T, I>(exec, At, heads * (in.width + 1), heads * in.width, partial, d.X, d.alpha_src);
  });
}

#define INSTANTIATE(T, I)                                                                                 \
  template void gat(Cuda, const Gat<T, I>&, T*, Sum<T>*, Sum<T>*);                                        \
  template void gat_backward(Cuda, const Gat<T, I>&, const PatternView<I>&, const I*, const T*, const T*, \
                             const Sum<T>*, Sum<T>*, const GatGradients<T>&);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
