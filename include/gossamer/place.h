// SPDX-License-Identifier: BSD-3-Clause
// Entries of one pattern laid out on another:
//
//   out[p, :] = values[from[p], :], or 0 where from[p] < 0        O(n · heads)
//
// One thread owns one entry of `out`. Sums of patterns, intersections and slices are made of this.
#pragma once
#include "exec.h"
#include "half.h"

namespace gossamer::kernels {

// f(begin, end) over equal parts of n entries, small n on the caller's thread.
template <Host E, class F>
void for_each_entry_range(const E& exec, int64_t n, int64_t cost, const F& f) {
  const int64_t parts = std::clamp<int64_t>(n * cost / 32768, 1, std::max<int64_t>(exec.threads(), 1));
  if (parts == 1) return f(int64_t{0}, n);
  exec.parallel_for(parts, [&](int64_t k) { f(n * k / parts, n * (k + 1) / parts); });
}

template <Host E, class T, class I>
void place(const E& exec, int64_t n, const I* from, int64_t heads, const T* values, T* out) {
  for_each_entry_range(exec, n, heads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t h = 0; h < heads; ++h) out[p * heads + h] = from[p] < 0 ? T{} : values[from[p] * heads + h];
  });
}

// The same for two at once, added: out = place(a, from_a) + place(b, from_b).
template <Host E, class T, class I>
void place_sum(const E& exec, int64_t n, int64_t heads, const I* from_a, const T* a, const I* from_b, const T* b,
               T* out) {
  for_each_entry_range(exec, n, heads, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t h = 0; h < heads; ++h) {
        const Sum<T> x = from_a[p] < 0 ? T{} : a[from_a[p] * heads + h];
        const Sum<T> y = from_b[p] < 0 ? T{} : b[from_b[p] * heads + h];
        out[p * heads + h] = static_cast<T>(x + y);
      }
  });
}

}  // namespace gossamer::kernels
