// SPDX-License-Identifier: BSD-3-Clause
// Exact dot products, compiled for float and double.
#include <gossamer/kernels/dot_exact.h>

namespace gossamer::kernels {

GOSSAMER_DOT_EXACT(float)
GOSSAMER_DOT_EXACT(double)

}  // namespace gossamer::kernels
