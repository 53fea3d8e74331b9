// SPDX-License-Identifier: BSD-3-Clause
// Its mere presence tells the library that CUDA kernels are linked, and for what: see Cuda in gossamer/kernels/exec.h.
#include <gossamer/kernels/exec.h>

namespace gossamer {

void cuda_linked() {}

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)
// What nvcc compiled for, as it says it, for show_config: "800,900" is sm_80 and sm_90; "" is the emulator.
const char* cuda_architectures() {
#if defined(__CUDA_ARCH_LIST__)
  return TEXT(__CUDA_ARCH_LIST__);
#else
  return "";
#endif
}

}  // namespace gossamer
