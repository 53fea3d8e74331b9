// SPDX-License-Identifier: BSD-3-Clause
// What iterative solvers ask of a preconditioner: an approximate inverse of A that can be applied, and its transpose.
#pragma once
#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

namespace gossamer::linalg {

using at::Tensor;

// z = M r, or Mᵀ r, with M close to A⁻¹. The result is differentiable in r and in the values M was made of, for those
// who learn it; a solver that differentiates implicitly has no use for the second.
class Preconditioner {
 public:
  virtual ~Preconditioner() = default;
  virtual int64_t size() const = 0;                                 // n
  virtual Tensor apply(const Tensor& r, bool transpose) const = 0;  // r: (n,) or (n, k)
};

using PreconditionerPtr = std::shared_ptr<const Preconditioner>;

}  // namespace gossamer::linalg

namespace gossamer::ops {

// A preconditioner as a handle (a tensor that owns it, by which it travels through ops), and back.
at::Tensor preconditioner_handle(linalg::PreconditionerPtr M);
linalg::PreconditionerPtr preconditioner_of(const at::Tensor& handle);

// M.apply(r, t) for the preconditioner of a handle.
at::Tensor precondition(const at::Tensor& handle, const at::Tensor& r, bool t);

}  // namespace gossamer::ops
