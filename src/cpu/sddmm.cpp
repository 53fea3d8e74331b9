// SPDX-License-Identifier: BSD-3-Clause
// U Vᵀ on a pattern, compiled for every type.
#include <gossamer/kernels/sddmm.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SDDMM)

}  // namespace gossamer::kernels
