// SPDX-License-Identifier: BSD-3-Clause
// Entries of one pattern laid out on another:
//
//   out[p, :] = values[from[p], :], or 0 where from[p] < 0        O(n · heads)
//
// One thread owns one entry of `out`. Sums of patterns, intersections and slices are made of this.
#pragma once
#include "exec.h"

namespace gossamer::kernels {

template <Host E, class T, class I>
void place(const E& exec, int64_t n, const I* from, int64_t heads, const T* values, T* out) {
  const int64_t parts = std::clamp<int64_t>(n * heads / 32768, 1, std::max<int64_t>(exec.threads(), 1));
  exec.parallel_for(parts, [=](int64_t k) {
    for (int64_t p = n * k / parts; p < n * (k + 1) / parts; ++p)
      for (int64_t h = 0; h < heads; ++h) out[p * heads + h] = from[p] < 0 ? T{} : values[from[p] * heads + h];
  });
}

}  // namespace gossamer::kernels
