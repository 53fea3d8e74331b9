// SPDX-License-Identifier: BSD-3-Clause
// Graph attention (GAT) and its gradients, compiled for every type.
#include <gossamer/kernels/gat.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_GAT)

}  // namespace gossamer::kernels
