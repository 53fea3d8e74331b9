// SPDX-License-Identifier: BSD-3-Clause
// Probing for the entries of a matrix, compiled for the types that have the digits for it.
#include <gossamer/kernels/probe.h>

namespace gossamer::kernels {

GOSSAMER_PROBE(float)
GOSSAMER_PROBE(double)
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_MISMATCH)

}  // namespace gossamer::kernels
