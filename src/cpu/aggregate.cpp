// SPDX-License-Identifier: BSD-3-Clause
// The graph of strong connections, compiled for float and double.
#include <gossamer/kernels/aggregate.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_STRONG_GRAPH)

}  // namespace gossamer::kernels
