// SPDX-License-Identifier: BSD-3-Clause
// cuDSS, NVIDIA's direct solver, as an engine for matrices on a CUDA device: opened when a program asks for it.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "solve/device/device_factor.h"

namespace gossamer {

std::string cudss_version();  // empty where it is not installed

// The factors of matrices with these values (nnz, H), L Lᵀ if `symmetric` and else L U. Null where a pivot had to be
// replaced or was not positive, which cuDSS tells the host: two looks a head. cuDSS does not say in general what it
// divides by, so determinants come from factors of ours, which are made when they are first asked for.
std::shared_ptr<const DeviceEngineFactor> factored_by_cudss(const DevicePattern& A, const Tensor& values,
                                                            bool symmetric,
                                                            std::function<Objects<FactoredMatrix>()> ours);

}  // namespace gossamer
