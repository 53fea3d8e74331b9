// SPDX-License-Identifier: BSD-3-Clause
#include "solve/device/device_pattern.h"

#include <ATen/ATen.h>

#include <utility>

#include "core/host.h"

namespace gossamer {

DevicePattern::DevicePattern(std::vector<Tensor> pattern, int64_t size)
    : n(size),
      tensors(std::move(pattern)),
      rows(ops::row_indices(tensors[0], tensors[1])),
      columns(tensors[1].to(at::kLong)) {}

std::shared_ptr<const Elimination> DevicePattern::kept(FactorKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(kind);
  return found == kept_.end() ? nullptr : found->second;
}

void DevicePattern::keep(FactorKind kind, std::shared_ptr<const Elimination> elimination) const {
  const std::lock_guard lock(mutex_);
  kept_[kind] = std::move(elimination);
}

}  // namespace gossamer
