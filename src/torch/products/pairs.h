// SPDX-License-Identifier: BSD-3-Clause
// What the ops of two sparse matrices share. Those that meet for the first time are found in one pass, before anybody
// knows how many entries the result has: in room for the most there can be, which is shortened then.
#pragma once
#include <gossamer/products.h>
#include "core/csr.h"
#include "core/differentiable.h"

namespace gossamer {

namespace ops {

// {indptr, indices, values} of A B for two patterns that have not met: in one pass, where there is room for it.
std::tuple<Tensor, Tensor, Tensor> first_product(TensorList A, const Tensor& a, at::IntArrayRef shape_A, TensorList B,
                                                 const Tensor& b, at::IntArrayRef shape_B);

}  // namespace ops

// dA and dB of C = A B, A Bᵀ or Aᵀ B, as values on the patterns of A and B: see spgemm.cpp.
Vjp spgemm_vjp(TensorList A, SymIntArrayRef shape_A, TensorList B, SymIntArrayRef shape_B, TensorList C,
               SymIntArrayRef shape_C, int64_t form);

// Leaves the first n numbers of a fresh vector, where they are. The memory behind them was never written to, so it is
// addresses rather than memory; it is given back with them.
inline void shorten(const at::Tensor& vector, int64_t n) {
  vector.unsafeGetTensorImpl()->set_sizes_contiguous({n});
  vector.storage().set_nbytes(static_cast<size_t>(n) * vector.itemsize());
}

}  // namespace gossamer
