// SPDX-License-Identifier: BSD-3-Clause
// Triplets to CSR, compiled for every index type.
#include <gossamer/kernels/coo.h>

namespace gossamer::kernels {

GOSSAMER_COO_SORT()
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_COO)

}  // namespace gossamer::kernels
