// SPDX-License-Identifier: BSD-3-Clause
// Graph attention, second kind (GATv2), compiled for every type.
#include <gossamer/kernels/gatv2.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_GATV2)

}  // namespace gossamer::kernels
