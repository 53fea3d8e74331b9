// SPDX-License-Identifier: BSD-3-Clause
// The check of a pattern's integers, compiled for every index type.
#include <gossamer/kernels/bounds.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_INDEX(GOSSAMER_BOUNDS)

}  // namespace gossamer::kernels
