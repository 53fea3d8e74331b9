// SPDX-License-Identifier: BSD-3-Clause
// The random vectors that an iteration begins with: the same ones in every run.
#pragma once
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace gossamer {

// A row (1, n) of normal numbers.
inline at::Tensor random_row(int64_t n, uint64_t seed) {
  return at::randn({1, n}, at::detail::createCPUGenerator(seed), at::TensorOptions().dtype(at::kDouble));
}

}  // namespace gossamer
