// SPDX-License-Identifier: BSD-3-Clause
// The gradients of GATv2, compiled for every type: a file of their own, because they take the longest of all.
#include <gossamer/kernels/gatv2_backward.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_GATV2_BACKWARD)

}  // namespace gossamer::kernels
