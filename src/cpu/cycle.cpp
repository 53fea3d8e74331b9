// SPDX-License-Identifier: BSD-3-Clause
// The two halves of a multigrid cycle, compiled for float and double.
#include <gossamer/kernels/cycle.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_CYCLE)

}  // namespace gossamer::kernels
