// SPDX-License-Identifier: BSD-3-Clause
// Its mere presence tells the library that CUDA kernels are linked: see Cuda in gossamer/kernels/exec.h.
#include <gossamer/kernels/exec.h>

namespace gossamer {

void cuda_linked() {}

}  // namespace gossamer
