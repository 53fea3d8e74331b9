// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factor, its solves, its derivatives, its selected inverse and the derivative of that, compiled for
// double, in which all engines factor.
#include <gossamer/kernels/cholesky_tangent.h>
#include <gossamer/kernels/inverse_tangent.h>
#include <gossamer/kernels/multifrontal_solve.h>
#include <gossamer/kernels/selected_inverse.h>

namespace gossamer::kernels {

GOSSAMER_MULTIFRONTAL(double)
GOSSAMER_MULTIFRONTAL_SOLVE(double)
GOSSAMER_SELECTED_INVERSE(double)
GOSSAMER_INVERSE_TANGENT(double)
GOSSAMER_CHOLESKY_TANGENT(double)

}  // namespace gossamer::kernels
