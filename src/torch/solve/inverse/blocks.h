// SPDX-License-Identifier: BSD-3-Clause
// The inverse of symmetric positive definite matrices on their pattern, from the blocks of our own Cholesky factors, at
// the cost of a few factorisations. What was factored is R A R with R = diag(r): A⁻¹ = R (R A R)⁻¹ R.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/csr.h"
#include "solve/factor.h"

namespace gossamer {

// The factors of a handle, one a head, if all are Cholesky factors on the host: those whose blocks are not ours are
// made anew by our own engine. Else none: n solves must do.
Objects<FactoredMatrix> factors_with_blocks(const Tensor& factor, TensorList pattern, const Tensor& values,
                                            SymIntArrayRef shape);

// A⁻¹ on the pattern, which is A⁻ᵀ; values say type and shape.
Tensor inverse_by_blocks(const Objects<FactoredMatrix>& factors, TensorList pattern, const Tensor& values);

// -(A⁻¹ M A⁻¹) on the pattern, or -(A⁻¹ Mᵀ A⁻¹) if t. M is split into a symmetric and a skew part.
Tensor tangent_by_blocks(const Objects<FactoredMatrix>& factors, TensorList pattern, SymIntArrayRef shape,
                         const Tensor& M, bool t);

}  // namespace gossamer
