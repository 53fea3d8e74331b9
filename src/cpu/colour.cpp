// SPDX-License-Identifier: BSD-3-Clause
// Colours of a pattern, compiled for every index type.
#include <gossamer/kernels/colour.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_INDEX(GOSSAMER_COLOUR)

}  // namespace gossamer::kernels
