// SPDX-License-Identifier: BSD-3-Clause
// What this build is and what it found on the machine, for users and bug reports.
#include <ATen/Parallel.h>
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>
#include <torch/version.h>

#include <gossamer/config.h>
#include "core/op.h"
#include "solve/engines/engine.h"

namespace gossamer {
std::string show_config() {
  const std::string threads = std::to_string(at::get_num_threads());
  return std::string("gossamer: ") + GOSSAMER_VERSION + "\nvector code: " + name(simd_level()) +
         "\nthreads: " + threads + " (torch's pool; torch.set_num_threads)" + "\ntorch: " TORCH_VERSION +
         "\ncuda kernels: " + (&cuda_linked != nullptr ? "linked" : "not in this build") +
         "\nsolver engines: " + engine_names() + "\nsolver engines on a device: " + device_engine_names();
}

static const Composites composites = Composites().def("show_config() -> str", show_config);

}  // namespace gossamer
