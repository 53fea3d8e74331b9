// SPDX-License-Identifier: BSD-3-Clause
// Checks that all solves share, and the error that says a matrix is singular.
#pragma once
#include <gossamer/linalg.h>
#include "core/csr.h"

namespace gossamer {

// Throws SingularMatrixError(`op: what: the matrix is singular`).
template <class... What>
[[noreturn]] void throw_singular(const char* op, const What&... what) {
  throw SingularMatrixError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                            c10::str(op, ": ", what..., ": the matrix is singular"));
}

inline void check_square(const char* op, SymIntArrayRef shape) {
  TORCH_CHECK_VALUE(shape.size() != 2 || shape[0] == shape[1], op, ": the matrix must be square, not ", shape[0], " x ",
                    shape[1]);
}

}  // namespace gossamer
