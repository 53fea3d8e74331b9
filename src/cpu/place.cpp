// SPDX-License-Identifier: BSD-3-Clause
// Entries moved between a pattern and a part of it, compiled for every type.
#include <gossamer/kernels/place.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_PLACE)

}  // namespace gossamer::kernels
