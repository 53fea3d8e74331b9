// SPDX-License-Identifier: BSD-3-Clause
// The graph of strong connections and the smoothing, compiled for float and double.
#include <gossamer/kernels/aggregate.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_AGGREGATE)

}  // namespace gossamer::kernels
