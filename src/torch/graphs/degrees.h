// SPDX-License-Identifier: BSD-3-Clause
// The degrees of nodes, as GCN's normalisation D^-1/2 A D^-1/2 takes them.
#pragma once
#include <ATen/ATen.h>

namespace gossamer {

// D^-1/2. A node whose weights do not add up to a positive number has none; it counts as 0, with gradient 0.
inline at::Tensor inverse_root(const at::Tensor& degree) {
  const at::Tensor positive = degree.gt(0);
  return degree.where(positive, 1).pow(-0.5).where(positive, 0);
}

}  // namespace gossamer
