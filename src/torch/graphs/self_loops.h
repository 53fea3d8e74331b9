// SPDX-License-Identifier: BSD-3-Clause
// The kind of self-loops that an op is given as a number.
#pragma once
#include <gossamer/edges.h>

namespace gossamer {

inline SelfLoops self_loops_of(const char* op, int64_t number) {
  TORCH_CHECK_VALUE(number >= 0 && number <= 2, op, ": self_loops must be 0, 1 or 2, not ", number);
  return static_cast<SelfLoops>(number);
}

}  // namespace gossamer
