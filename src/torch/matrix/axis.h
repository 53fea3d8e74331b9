// SPDX-License-Identifier: BSD-3-Clause
// What the ops that reduce a matrix along an axis ask of their arguments.
#pragma once
#include "core/csr.h"

namespace gossamer {

inline void check_values(const char* op, const Tensor& values, const PatternTensors& A) {
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.dim() <= 2 && values.sym_size(0) == A.nnz(), op, ": values has shape ",
                    shape_text(values), " but the pattern has ", A.nnz(), " entries");
  TORCH_CHECK_VALUE(values.device() == A.indptr.device(), op, ": values are on ", values.device(),
                    " but the pattern is on ", A.indptr.device());
}

// 0 or 1.
inline int64_t axis(const char* op, int64_t dim) {
  TORCH_CHECK_INDEX(dim >= -2 && dim <= 1, op, ": dim must be 0, 1 or None, not ", dim);
  return dim < 0 ? dim + 2 : dim;
}

}  // namespace gossamer
