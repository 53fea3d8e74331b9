// SPDX-License-Identifier: BSD-3-Clause
// The softmax of each row, compiled for every type.
#include <gossamer/kernels/softmax.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SOFTMAX)

}  // namespace gossamer::kernels
