// SPDX-License-Identifier: BSD-3-Clause
// Powers of two that bring the rows and columns of matrices on a device to size 1, found there: no number is looked at.
#pragma once
#include <ATen/core/Tensor.h>

#include "solve/device/device_pattern.h"

namespace gossamer {

struct DeviceScales {
  Tensor rows, columns;  // (n, H)

  // values (nnz, H). As ScaledFactor (solve/factor.h) chooses them: of rows first and columns first, what leaves
  // entries nearer to one size; for a symmetric matrix, rows and columns alike.
  DeviceScales(const DevicePattern& A, const Tensor& values, bool symmetric);
  Tensor scaled(const DevicePattern& A, const Tensor& values) const;  // R A C
};

}  // namespace gossamer
