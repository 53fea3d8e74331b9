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

// A handle of factors, one for each matrix that `values` on the pattern are.
inline void check_factor(const char* op, const Tensor& factor, TensorList pattern, const Tensor& values,
                         SymIntArrayRef shape) {
  check_square(op, shape);
  const PatternTensors A = unpack(op, pattern, shape, /*t=*/false);
  check_dense(op, "values", values, A, A.nnz(), "entries");
  TORCH_CHECK_VALUE(values.dim() <= 2 && factor.sym_sizes() == values.sym_sizes().slice(1), op, ": a factor of shape ",
                    shape_text(factor), " is not of values ", shape_text(values));
}

}  // namespace gossamer
