// SPDX-License-Identifier: BSD-3-Clause
// First products, compiled for every type.
#include <gossamer/kernels/first_product.h>

namespace gossamer::kernels {

GOSSAMER_FOR_EACH_TYPE(GOSSAMER_FIRST_PRODUCT)

}  // namespace gossamer::kernels
