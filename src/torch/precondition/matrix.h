// SPDX-License-Identifier: BSD-3-Clause
// What all preconditioners of a matrix check and keep.
#pragma once
#include <gossamer/preconditioners.h>

#include "core/csr.h"
#include "core/host.h"
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
  return t.is_cpu() && t.has_storage() &&
         !t.key_set().has_any(
             c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::Functionalize,
                                  c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::FuncTorchBatched}));
}

// For update: the pattern it was made for.
inline void check_same_pattern(const char* op, const Pattern& wanted, const SparseMatrix& A) {
  check_preconditioned(op, A);
  TORCH_CHECK_VALUE(wanted == A.pattern(), op, ".update: A has another pattern, ", A.pattern().repr(), ", than ",
                    wanted.repr(), "; make a new preconditioner");
}

// While it lives, what is made is an ordinary tensor, to be kept with a pattern: neither one of inference mode nor one
// of a transform of torch.func that the caller is inside.
struct KeptTensors {
  KeptResults ordinary;
  c10::impl::ExcludeDispatchKeyGuard no_transform{c10::DispatchKeySet(
      {c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode})};
};

// While it lives, numbers are ordinary tensors, which may be used outside the inference mode they are made in;
// gradients are recorded, or not, as before.
struct OrdinaryNumbers {
  bool recording = at::GradMode::is_enabled();
  KeptResults ordinary;
  at::AutoGradMode mode{recording};
};

// Inside a transform: finds now what solves and products keep with a pattern when they first need it.
void keep_outside_transforms(const Pattern& P);

// r or z as (n, k) if it is (n,), for scaling of rows.
inline Tensor beside(const Tensor& d, const Tensor& r) {
  return r.dim() == 1 ? d : d.unsqueeze(1);
}

}  // namespace gossamer
