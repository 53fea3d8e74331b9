// SPDX-License-Identifier: BSD-3-Clause
// What all preconditioners of a matrix check.
#pragma once
#include <gossamer/preconditioners.h>

#include "core/csr.h"
#include "solve/solve.h"

namespace gossamer {

// A square matrix of float32 or float64 numbers on the host, one value an entry.
inline void check_preconditioned(const char* op, const SparseMatrix& A) {
  check_square(op, A.pattern().sym_shape());
  A.pattern().check_simple(op);
  TORCH_CHECK_VALUE(A.values().dim() == 1, op, ": values must be (nnz,), not ", shape_text(A.values()));
  TORCH_CHECK_TYPE(A.dtype() == at::kFloat || A.dtype() == at::kDouble, op, ": values must be float32 or float64, not ",
                   A.dtype());
  TORCH_CHECK_NOT_IMPLEMENTED(!A.device().is_cuda(), op, ": preconditioners are made on the host; A is on ",
                              A.device());
}

// For update: the pattern it was made for.
inline void check_same_pattern(const char* op, const Pattern& wanted, const SparseMatrix& A) {
  check_preconditioned(op, A);
  TORCH_CHECK_VALUE(wanted == A.pattern(), op, ".update: A has another pattern, ", A.pattern().repr(), ", than ",
                    wanted.repr(), "; make a new preconditioner");
}

// r or z as (n, k) if it is (n,), for scaling of rows.
inline Tensor beside(const Tensor& d, const Tensor& r) {
  return r.dim() == 1 ? d : d.unsqueeze(1);
}

}  // namespace gossamer
