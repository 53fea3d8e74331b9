// SPDX-License-Identifier: BSD-3-Clause
// Equal eigenvalues, to the precision that they are known with: clusters. What is said between two values of one
// cluster depends on the basis that their space happens to have.
#pragma once
#include <ATen/ATen.h>

#include "core/csr.h"

namespace gossamer {

// 1 between values of one label, 0 elsewhere, (k, k).
inline Tensor within_clusters(const Tensor& labels) {
  return at::eq(labels.unsqueeze(0), labels.unsqueeze(1)).to(at::kDouble);
}

// A label a value, (k) ascending: it changes where a value exceeds the one before by more than `gap`.
inline Tensor cluster_labels(const Tensor& values, double gap) {
  const Tensor labels = at::zeros({values.size(0)}, at::TensorOptions().dtype(at::kLong));
  for (int64_t i = 1; i < values.size(0); ++i)
    mutable_ptr<int64_t>(labels)[i] =
        ptr<int64_t>(labels)[i - 1] + (ptr<double>(values)[i] - ptr<double>(values)[i - 1] > gap ? 1 : 0);
  return labels;
}

}  // namespace gossamer
