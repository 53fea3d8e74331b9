// SPDX-License-Identifier: BSD-3-Clause
// What the ops of two sparse matrices share. Those that meet for the first time are found in one pass, before anybody
// knows how many entries the result has: in room for the most there can be, which is shortened then.
#pragma once
#include <gossamer/products.h>
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/host.h"

namespace gossamer {

namespace ops {

// {indptr, indices, values} of A B for two patterns that have not met: in one pass, where there is room for it.
std::tuple<Tensor, Tensor, Tensor> first_product(TensorList A, const Tensor& a, at::IntArrayRef shape_A, TensorList B,
                                                 const Tensor& b, at::IntArrayRef shape_B);

}  // namespace ops

// dA and dB of C = A B, A Bᵀ or Aᵀ B, as values on the patterns of A and B: see spgemm.cpp.
Vjp spgemm_vjp(TensorList A, SymIntArrayRef shape_A, TensorList B, SymIntArrayRef shape_B, TensorList C,
               SymIntArrayRef shape_C, int64_t form);

// Two patterns on the host, whose indices have one type. `op` is what the user called.
inline std::pair<PatternTensors, PatternTensors> host_pair(const char* op, TensorList A, at::IntArrayRef shape_A,
                                                           TensorList B, at::IntArrayRef shape_B) {
  std::pair<PatternTensors, PatternTensors> both = {host_pattern(op, A, c10::fromIntArrayRefSlow(shape_A)),
                                                    host_pattern(op, B, c10::fromIntArrayRefSlow(shape_B))};
  const auto type = both.first.indptr.scalar_type(), other = both.second.indptr.scalar_type();
  TORCH_CHECK_TYPE(type == other, op, ": A has ", type, " indices but B has ", other);
  return both;
}

// The same where they are, on a device.
inline void check_device_pair(const char* op, TensorList A, at::IntArrayRef shape_A, TensorList B,
                              at::IntArrayRef shape_B) {
  unpack(op, A, c10::fromIntArrayRefSlow(shape_A), /*t=*/false);
  unpack(op, B, c10::fromIntArrayRefSlow(shape_B), /*t=*/false);
  TORCH_CHECK_VALUE(A[0].device() == B[0].device(), op, ": A is on ", A[0].device(), " but B is on ", B[0].device());
  TORCH_CHECK_TYPE(A[0].scalar_type() == B[0].scalar_type(), op, ": A has ", A[0].scalar_type(), " indices but B has ",
                   B[0].scalar_type());
}

inline void check_they_multiply(at::IntArrayRef shape_A, at::IntArrayRef shape_B) {
  TORCH_CHECK_VALUE(shape_A[1] == shape_B[0], "spgemm: A is ", shape_A[0], " x ", shape_A[1], " and B is ", shape_B[0],
                    " x ", shape_B[1], ", which do not multiply");
}

// Leaves the first n numbers of a fresh vector, where they are. The memory behind them was never written to, so it is
// addresses rather than memory; it is given back with them.
inline void shorten(const at::Tensor& vector, int64_t n) {
  vector.unsafeGetTensorImpl()->set_sizes_contiguous({n});
  vector.storage().set_nbytes(static_cast<size_t>(n) * vector.itemsize());
}

}  // namespace gossamer
