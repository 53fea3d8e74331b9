// SPDX-License-Identifier: BSD-3-Clause
// Searches and running sums of which patterns on a device are made: device.cpp, device_parts.cpp.
#pragma once
#include <ATen/ATen.h>

#include "core/csr.h"

namespace gossamer::device_patterns {

inline Tensor keys_of(const Tensor& indptr, const Tensor& indices, int64_t cols) {
  return ops::row_indices(indptr, indices) * cols + indices;
}

inline Tensor inside(const Tensor& k, int64_t size) {
  return k.ge(0).logical_and(k.lt(size));
}

// Which keys are among `others`; rank: how many of those are below each key.
inline Tensor among(const Tensor& keys, const Tensor& others, const Tensor& rank) {
  if (others.size(0) == 0) return at::zeros_like(keys, at::kBool);
  return others.index_select(0, rank.clamp_max(others.size(0) - 1)).eq(keys);
}

// Before each entry, how many of those that `chosen` marks there are.
inline Tensor before(const Tensor& chosen) {
  const Tensor numbers = chosen.to(at::kLong);
  return numbers.cumsum(0) - numbers;
}

// With a last entry: how many there are in all.
inline Tensor running(const Tensor& chosen) {
  return at::cat({at::zeros({1}, chosen.options().dtype(at::kLong)), chosen.to(at::kLong).cumsum(0)});
}

// Where `chosen` is true, which is at `count` places: on a device nonzero() would look for that number. There those
// that are not chosen are all written to one place at the end, which is cut off.
inline Tensor places(const Tensor& chosen, int64_t count) {
  if (chosen.is_cpu()) return chosen.nonzero().squeeze(1);
  const auto integers = chosen.options().dtype(at::kLong);
  const int64_t n = chosen.size(0);
  return at::empty({n + 1}, integers)
      .scatter(0, at::where(chosen, before(chosen), n), at::arange(n, integers))
      .narrow(0, 0, count);
}

// Runs of numbers 0, 1, 2, … begin at `starts`, and may be empty: the run that each number is in.
inline Tensor run_of(const Tensor& starts, const Tensor& numbers) {
  return at::searchsorted(starts, numbers, /*out_int32=*/false, /*right=*/true) - 1;
}

}  // namespace gossamer::device_patterns
