// SPDX-License-Identifier: BSD-3-Clause
// Symbolic work: integers only, on the host, once per pattern. A device does its own: structure/device.h.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>
#include <gossamer/kernels/bounds.h>

#include <limits>

#include "core/csr.h"
#include "core/launch.h"
#include "memory/pages.h"

namespace gossamer {

// While it lives, results are ordinary tensors even in inference mode: they are kept with the pattern, and a later
// training step saves them for its backward.
struct KeptResults {
  c10::InferenceMode ordinary{false};
};

// int64 if it must be or already was, else int32.
inline at::ScalarType index_type(bool wide, std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes) wide = wide || size >= std::numeric_limits<int32_t>::max();
  return wide ? at::kLong : at::kInt;
}

inline Tensor host_integers(int64_t count, at::ScalarType type = at::kLong) {
  return empty_result({SymInt(count)}, at::TensorOptions().dtype(type));
}

// A pattern for symbolic work, on the host. Unlike the numeric ops, which trust a pattern because it was checked when
// it was built, the symbolic ones look at its integers once more: they run once per pattern, and they write to memory
// that these integers point into.
inline PatternTensors host_pattern(const char* op, TensorList pattern, SymIntArrayRef shape) {
  const PatternTensors A = unpack(op, pattern, shape, /*t=*/false);
  if (A.indptr.is_meta()) return A;
  with_index_type<void>(A.indptr.scalar_type(), [&]<class, class I> {
    TORCH_CHECK_VALUE(kernels::in_bounds(torch_pool(), A.view<I>()), op, ": the pattern does not fit its shape ",
                      shape[0], " x ", shape[1]);
  });
  return A;
}

}  // namespace gossamer
