// SPDX-License-Identifier: BSD-3-Clause
// The transpose of a pattern, compiled for every index type.
#include <gossamer/kernels/transpose.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_INDEX(GOSSAMER_TRANSPOSE)

}  // namespace gossamer::kernels
