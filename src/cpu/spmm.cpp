// SPDX-License-Identifier: BSD-3-Clause
// Y = A X, compiled for every type.
#include <gossamer/kernels/spmm.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SPMM)
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_SPMV_TRANSPOSED)

}  // namespace gossamer::kernels
