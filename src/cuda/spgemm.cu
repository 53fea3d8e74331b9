// SPDX-License-Identifier: BSD-3-Clause
// Launches sparse products; the kernels are in spgemm.cuh.
#include "spgemm.cuh"

namespace gossamer::kernels {

template <class T, class I>
void spgemm_nn(Cuda exec, const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, T* values, Sum<T>* scratch) {
  device::launch_warps(exec, spgemm_rows<T, I>, device::runs_of(C), A, B, C, values, scratch);
}

template <class T, class I>
void spgemm_nt(Cuda exec, const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, T* values) {
  device::launch_warps(exec, spgemm_dots<T, I>, device::runs_of(C), A, B, C, values);
}

#define INSTANTIATE(T, I)                                                                                \
  template void spgemm_nn(Cuda, const Csr<T, I>&, const Csr<T, I>&, const PatternView<I>&, T*, Sum<T>*); \
  template void spgemm_nt(Cuda, const Csr<T, I>&, const Csr<T, I>&, const PatternView<I>&, T*);
GOSSAMER_FOR_EACH_TYPE(INSTANTIATE)
INSTANTIATE(int64_t, int32_t)
INSTANTIATE(int64_t, int64_t)
#undef INSTANTIATE

}  // namespace gossamer::kernels
