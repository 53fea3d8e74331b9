// SPDX-License-Identifier: BSD-3-Clause
// MINRES for the shifted transform, w with (T - θ_i) w_i = r_i beside the known eigenvectors: all rows at once, each
// with its own θ. It needs no definite operator, so the values may be anywhere in the spectrum.
#pragma once
#include <ATen/core/Tensor.h>

#include "spectral/transform.h"

namespace gossamer {

// r, w: (c, n); theta: (c, 1); X, MX: (k, n), which r is orthogonal to. Throws ConvergenceError.
Tensor minres(const SpectralTransform& T, const Tensor& theta, const Tensor& r, const Tensor& X, const Tensor& MX);

}  // namespace gossamer
