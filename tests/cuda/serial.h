// SPDX-License-Identifier: BSD-3-Clause
// The reference: the CPU kernels under Serial, compiled once for all variants of the tests, because vector code for
// every type and instruction set takes minutes under the sanitizers, and is not what they look at here.
#pragma once
#include <gossamer/kernels/sddmm.h>
#include <gossamer/kernels/spmm.h>
#include "instantiate.h"

namespace gossamer::kernels {

#define GOSSAMER_SERIAL(T, I)                                                                                     \
  GOSSAMER_EXTERN template void spmm(const Serial&, const Csr<T, I>&, const T*, int64_t, int64_t, T*);            \
  GOSSAMER_EXTERN template void sddmm(const Serial&, const PatternView<I>&, int64_t, const T*, int64_t, const T*, \
                                      int64_t, int64_t, T*);

#if !defined(GOSSAMER_EXTERN)
#define GOSSAMER_EXTERN extern
#endif
FOR_EACH_TYPE(GOSSAMER_SERIAL)

}  // namespace gossamer::kernels
