// SPDX-License-Identifier: BSD-3-Clause
// The types every CUDA kernel is compiled for: X(T, I) for each value type and index type. The one list.
#pragma once
#include <cstdint>

#include <gossamer/kernels/half.h>

#define GOSSAMER_FOR_EACH_VALUE(X, I) \
  X(float, I)                         \
  X(double, I)                        \
  X(::gossamer::bfloat16, I)          \
  X(::gossamer::float16, I)

#define FOR_EACH_TYPE(X)              \
  GOSSAMER_FOR_EACH_VALUE(X, int32_t) \
  GOSSAMER_FOR_EACH_VALUE(X, int64_t)
