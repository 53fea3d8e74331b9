// SPDX-License-Identifier: BSD-3-Clause
// Bases of long vectors, compiled once, in float64.
#include <gossamer/kernels/basis.h>

namespace gossamer::kernels {

GOSSAMER_BASIS()

}  // namespace gossamer::kernels
