// SPDX-License-Identifier: BSD-3-Clause
// Passes over blocks of columns, compiled for float and double.
#include <gossamer/kernels/krylov.h>

namespace gossamer::kernels {

GOSSAMER_KRYLOV(float)
GOSSAMER_KRYLOV(double)

}  // namespace gossamer::kernels
