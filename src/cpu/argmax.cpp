// SPDX-License-Identifier: BSD-3-Clause
// The place of each row's largest number, compiled for every type.
#include <gossamer/kernels/argmax.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_ARGMAX)

}  // namespace gossamer::kernels
