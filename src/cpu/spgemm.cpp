// SPDX-License-Identifier: BSD-3-Clause
// Sparse times sparse, compiled for every type; its pattern, for every index type.
#include <gossamer/kernels/spgemm.h>
#include <gossamer/kernels/spgemm_pattern.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SPGEMM)
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_SPGEMM_PATTERN)

}  // namespace gossamer::kernels
