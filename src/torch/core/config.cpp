// SPDX-License-Identifier: BSD-3-Clause
// What this build is and what it found on the machine, for users and bug reports.
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>
#include <torch/version.h>

#include <sstream>

#include <gossamer/config.h>
#include "core/op.h"
#include "solve/engines/engine.h"

namespace gossamer {

[[gnu::weak]] const char* cuda_architectures();  // of src/cuda/linked.cu, there where cuda_linked is

// What the kernels were compiled for, and whether torch has a device to run them on.
static std::string cuda_kernels() {
  if (&cuda_linked == nullptr) return "not in this build";
  std::string text;
  std::istringstream architectures(cuda_architectures());
  for (std::string number; std::getline(architectures, number, ',');)
    text += (text.empty() ? "compiled for sm_" : ", sm_") + std::to_string(std::stoi(number) / 10);
  if (text.empty()) text = "emulated";
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  const int devices = hooks.hasCUDA() ? static_cast<int>(hooks.deviceCount()) : 0;
  if (devices == 0)
    return text + (hooks.hasCUDART() ? "; torch finds no device" : "; this torch is built without CUDA");
  return text + "; " + std::to_string(devices) + (devices == 1 ? " device" : " devices");
}

std::string show_config() {
  return c10::str("gossamer: ", GOSSAMER_VERSION, "\nvector code: ", name(simd_level()),
                  "\nthreads: ", at::get_num_threads(), " (torch's pool; torch.set_num_threads)",
                  "\ntorch: ", TORCH_VERSION, "\ncuda kernels: ", cuda_kernels(), "\nsolver engines: ", engine_names(),
                  "\nsolver engines on a device: ", device_engine_names());
}

static const Composites composites = Composites().def("show_config() -> str", show_config);

}  // namespace gossamer
