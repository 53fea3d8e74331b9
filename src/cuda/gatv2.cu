// SPDX-License-Identifier: BSD-3-Clause
// Launches graph attention of the second kind and its gradients; the kernels are in gatv2.cuh.
#include "gatv2.cuh"

namespace gossamer::kernels {

template <class T, class I>
void gatv2(Cuda exec, const Gatv2<T, I>& in, T* Z, Sum<T>* lse, Sum<T>* scratch) {
  device::with_layout(in.width, [&]<int lanes, int columns> {
    const int64_t warps = device::runs_of(in.A) * in.heads * device::tiles_of(in.width, lanes * columns);
    device::launch_warps(exec, gatv2_tiles<lanes, columns, T, I>, warps, in, Z, lse, scratch);
  });
  device::launch_attend_pieces(exec, in, scratch, Z, lse);
}

// Both second passes use one piece of scratch, one after the other.
template <class T, class I>
void gatv2_backward(Cuda exec, const Gatv2<T, I>& in, const PatternView<I>& At, const I* perm, const T* G, const T* Z,
                    const Sum<T>* lse, Sum<T>* scratch, const Gatv2Gradients<T>& d) {
  const int64_t all = in.heads * in.width, parts = gatv2_cuda_parts(in.A.rows);
  const int64_t sums = piece_places(in.A.nnz) + parts, runs = device::runs_of(in.A) * in.heads;
  Sum<T>*d_att = scratch + 2 * in.A.nnz * in.heads, *partial = d_att + sums * all;
  device::with_layout(in.width, [&]<int lanes, int columns> {
    const int64_t tiles = in.heads * device::tiles_of(in.width, lanes * columns), cols = device::runs_of(At) * tiles;
    device::launch_warps(exec, gatv2_entry_gradients<lanes, T, I>, runs, in, G, Z, lse, scratch);
    device::launch_warps(exec, gatv2_row_gradients<lanes, columns, T, I>, sums * tiles, in, parts, scratch, d, d_att,
                         partial);
    device::launch_warps(exec, gatv2_sum_parts<T>, all, all, sums, d_att, d.att);
    device::launch_add_pieces<T, I>(exec, in.A, all, all, partial, d.x_dst, nullptr);
    device::launch_warps(exec, gatv2_col_gradients<lanes, columns, T, I>, cols, in, At, perm, G, scratch, d.x_src,
                         partial);
    device::launch_add_pieces<T, I>(exec, At, all, all, partial, d.x_src, nullptr);
  });
}

#define INSTANTIATE(T, I)                                                                                     \
  template void gatv2(Cuda, const Gatv2<T, I>&, T*, Sum<T>*, Sum<T>*);                                        \
  template void gatv2_backward(Cuda, const Gatv2<T, I>&, const PatternView<I>&, const I*, const T*, const T*, \
                               const Sum<T>*, Sum<T>*, const Gatv2Gradients<T>&);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
