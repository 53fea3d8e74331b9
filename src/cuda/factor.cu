// SPDX-License-Identifier: BSD-3-Clause
// Launches factorisations; the kernels are in factor.cuh.
#include "factor.cuh"

namespace gossamer::kernels {

template <class I>
void factor_lu(Cuda exec, const PatternView<I>& F, const I* diagonal, int64_t heads, double* values,
               const FactorProgress& progress) {
  if (heads > 0) device::launch_warps(exec, lu_rows<I>, F.rows, F, diagonal, heads, values, progress);
}

template <class I>
void factor_ldlt(Cuda exec, const PatternView<I>& F, int64_t heads, double* values, const FactorProgress& progress) {
  if (heads > 0) device::launch_warps(exec, ldlt_rows<I>, F.rows, F, heads, values, progress);
}

#define INSTANTIATE(I)                                                                                     \
  template void factor_lu(Cuda, const PatternView<I>&, const I*, int64_t, double*, const FactorProgress&); \
  template void factor_ldlt(Cuda, const PatternView<I>&, int64_t, double*, const FactorProgress&);
GOSSAMER_FOR_EACH_INDEX(INSTANTIATE)
#undef INSTANTIATE

}  // namespace gossamer::kernels
