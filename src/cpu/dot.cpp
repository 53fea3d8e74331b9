// SPDX-License-Identifier: BSD-3-Clause
// The dot product of long vectors, compiled for every value type.
#include <gossamer/kernels/dot.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_VALUE(GOSSAMER_DOT)

}  // namespace gossamer::kernels
