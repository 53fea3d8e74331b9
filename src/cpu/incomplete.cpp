// SPDX-License-Identifier: BSD-3-Clause
// Incomplete factors, compiled for float and double.
#include <gossamer/kernels/incomplete.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_INCOMPLETE)

}  // namespace gossamer::kernels
