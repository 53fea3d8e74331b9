// SPDX-License-Identifier: BSD-3-Clause
// Chooses the layout of lanes for Y = A X and launches it; the kernels are in spmm.cuh.
#include <gossamer/kernels/spmm.h>

#include "spmm.cuh"

namespace gossamer::kernels {

// Y, or what of it is known after the first pass: the pieces of long rows are in `partial`.
template <class T, class I>
struct Product {
  Csr<T, I> A;
  const T* X;
  int64_t ldx, width;
  T* Y;
  Sum<T>* partial;

  template <int lanes>
  void rows(Cuda exec) const {
    constexpr int of_a_warp = device::warp_lanes / lanes;
    const int64_t warps = piece_places(A.nnz) + (A.rows + of_a_warp - 1) / of_a_warp;
    device::launch_warps(exec, spmv_rows<lanes, T, I>, warps, A, X, ldx, Y, partial);
  }
  template <int lanes, int columns>
  void tiles(Cuda exec) const {
    const int64_t of_a_run = (A.heads * width + lanes * columns - 1) / (lanes * columns);
    const int64_t warps = device::runs_of(A) * of_a_run;
    device::launch_warps(exec, spmm_tiles<lanes, columns, T, I>, warps, A, X, ldx, width, Y, partial);
  }
  void first_pass(Cuda exec) const {
    const int64_t total = A.heads * width;
    if (total == 1) {  // about four entries a lane; the mean is all that is known without reading the pattern
      if (A.nnz <= 8 * A.rows) return rows<2>(exec);
      if (A.nnz <= 32 * A.rows) return rows<8>(exec);
      return rows<32>(exec);
    }
    if (total <= 4) return tiles<4, 1>(exec);
    if (total <= 8) return tiles<8, 1>(exec);
    if (total <= 16) return tiles<16, 1>(exec);
    if (total <= 32) return tiles<32, 1>(exec);
    if (total <= 64) return tiles<32, 2>(exec);
    return tiles<32, 4>(exec);
  }
};

template <class T, class I>
void spmm(Cuda exec, const Csr<T, I>& A, const T* X, int64_t ldx, int64_t width, T* Y, Sum<T>* scratch) {
  const int64_t total = A.heads * width;
  if (A.rows == 0 || total == 0) return;
  Product<T, I>{A, X, ldx, width, Y, scratch}.first_pass(exec);
  device::launch_add_pieces<T, I>(exec, A, total, total, scratch, Y, nullptr);
}

#define INSTANTIATE(T, I) template void spmm(Cuda, const Csr<T, I>&, const T*, int64_t, int64_t, T*, Sum<T>*);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
