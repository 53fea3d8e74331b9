// SPDX-License-Identifier: BSD-3-Clause
// Triangular solves, compiled for float and double; the triangle of a matrix, for every type.
#include <gossamer/kernels/triangular.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_SOLVE_TRIANGULAR)
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_KEEP_TRIANGLE)

}  // namespace gossamer::kernels
