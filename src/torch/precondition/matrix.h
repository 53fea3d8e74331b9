// SPDX-License-Identifier: BSD-3-Clause
// What all preconditioners of a matrix check and keep.
#pragma once
#include <gossamer/preconditioners.h>

#include "core/csr.h"
#include "core/host.h"
#include "matrix/kept.h"
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
  TORCH_CHECK_NOT_IMPLEMENTED(!A.values().key_set().has(c10::DispatchKey::FuncTorchBatched), op,
                              ": a preconditioner is one of one matrix; vmap over r, not over the values of A");
}

// Whether the numbers of a tensor can be read where they lie. Unlike has_numbers, also while a mode watches calls.
inline bool is_readable(const Tensor& t) {
  return t.is_cpu() && t.has_storage() && !is_wrapped(t) &&
         !t.key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::Functionalize}));
}

// For update: the pattern it was made for.
inline void check_same_pattern(const char* op, const Pattern& wanted, const SparseMatrix& A) {
  check_preconditioned(op, A);
  TORCH_CHECK_VALUE(wanted == A.pattern(), op, ".update: A has another pattern, ", A.pattern().repr(), ", than ",
                    wanted.repr(), "; make a new preconditioner");
}

// While it lives, numbers are ordinary tensors, which may be used outside the inference mode they are made in;
// gradients are recorded, or not, as before.
struct OrdinaryNumbers {
  bool recording = at::GradMode::is_enabled();
  KeptResults ordinary;
  at::AutoGradMode mode{recording};
};

// r or z as (n, k) if it is (n,), for scaling of rows.
inline Tensor beside(const Tensor& d, const Tensor& r) {
  return r.dim() == 1 ? d : d.unsqueeze(1);
}

}  // namespace gossamer
