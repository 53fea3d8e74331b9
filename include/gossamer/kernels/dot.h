// SPDX-License-Identifier: BSD-3-Clause
// The dot product of two long vectors:
//
//   Σ_p u[p] v[p]        O(n)
//
// In chunks of a fixed length, whose sums are then added in order: bitwise the same for every thread count, which a sum
// split by threads is not.
#pragma once
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/half.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

template <Host E, class T>
Sum<T> dot(const E& exec, int64_t n, const T* u, const T* v) {
  constexpr int64_t chunk = 4096;
  std::vector<Sum<T>> sums((n + chunk - 1) / chunk);
  const auto one = [&](int64_t k) {
    Sum<T> part[8] = {};  // independent sums, so that the additions do not wait for each other
    int64_t p = k * chunk;
    const int64_t end = std::min(n, p + chunk);
    for (; p + 8 <= end; p += 8)
      for (int s = 0; s < 8; ++s) part[s] += static_cast<Sum<T>>(u[p + s]) * static_cast<Sum<T>>(v[p + s]);
    for (; p < end; ++p) part[0] += static_cast<Sum<T>>(u[p]) * static_cast<Sum<T>>(v[p]);
    for (int s = 0; s < 8; ++s) sums[k] += part[s];
  };
  const auto chunks = static_cast<int64_t>(sums.size());
  if (chunks < 16)
    for (int64_t k = 0; k < chunks; ++k) one(k);
  else
    exec.parallel_for(chunks, one);
  Sum<T> total = 0;
  for (const Sum<T> sum : sums) total += sum;
  return total;
}

// Under Pool, compiled once: src/cpu/dot.cpp.
#define GOSSAMER_DOT(T, ...) __VA_ARGS__ template Sum<T> dot(const Pool&, int64_t, const T*, const T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_VALUE(GOSSAMER_DOT, extern)
#endif

}  // namespace gossamer::kernels
