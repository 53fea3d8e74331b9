// SPDX-License-Identifier: BSD-3-Clause
// Products on one of many processes, compiled for every type. The kernels of the rows inside are compiled elsewhere.
#define GOSSAMER_COMPILED
#include <gossamer/kernels/border.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_BORDER)
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_SPMV_IN_PARTS)

}  // namespace gossamer::kernels
