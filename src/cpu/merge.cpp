// SPDX-License-Identifier: BSD-3-Clause
// Unions and intersections of patterns, compiled for every index type.
#include <gossamer/kernels/merge.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_INDEX(GOSSAMER_MERGE)
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_UNION_SUM)

}  // namespace gossamer::kernels
