// SPDX-License-Identifier: BSD-3-Clause
// Launches the draw of a dropout; the kernel is in dropout.cuh.
#include "dropout.cuh"

namespace gossamer::kernels {

template <class S>
void dropout_mask(Cuda exec, const Dropout& dropout, int64_t entries, int64_t heads, S* factors) {
  const int64_t n = entries * heads;
  device::launch(exec, dropout_factors_of<S>, device::blocks_for(n), device::block_threads, dropout, n, heads, factors);
}

template void dropout_mask(Cuda, const Dropout&, int64_t, int64_t, float*);
template void dropout_mask(Cuda, const Dropout&, int64_t, int64_t, double*);

}  // namespace gossamer::kernels
