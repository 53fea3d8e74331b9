// SPDX-License-Identifier: BSD-3-Clause
// Entries moved between a pattern and a part of it. The map `at` ascends strictly: entry q of the part is entry at[q]
// of the whole, which has n.
//
//   pick:   part[q, :] = whole[at[q], :]
//   place:  whole[at[q], :] = part[q, :], 0 elsewhere        the adjoint of pick, and pick is its adjoint
//
// O(n · heads). One thread owns one entry of the result. Sums and entrywise products of matrices are made of this.
#pragma once
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/half.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// f(begin, end) over equal parts of n entries, small n on the caller's thread.
template <Host E, class F>
void for_each_entry_range(const E& exec, int64_t n, int64_t cost, const F& f) {
  const int64_t parts = std::clamp<int64_t>(n * cost / 32768, 1, std::max<int64_t>(exec.threads(), 1));
  if (parts == 1) return f(int64_t{0}, n);
  exec.parallel_for(parts, [&](int64_t k) { f(n * k / parts, n * (k + 1) / parts); });
}

// The part of a matrix: `count` entries and where they are in the whole.
template <class T, class I>
struct Part {
  int64_t count;
  const I* at;
  const T* values;
};

template <Host E, class T, class I>
void pick(const E& exec, int64_t count, const I* at, int64_t heads, const T* whole, T* part) {
  for_each_entry_range(exec, count, heads, [=](int64_t begin, int64_t end) {
    if (heads == 1)
      for (int64_t q = begin; q < end; ++q) part[q] = whole[at[q]];
    else
      for (int64_t q = begin; q < end; ++q) std::copy_n(whole + at[q] * heads, heads, part + q * heads);
  });
}

// whole[at[q], :] += part[q, :] from entry q of the part on, as far as at[q] < last; the entry behind those.
template <class T, class I>
int64_t add_entries(const Part<T, I>& part, int64_t q, int64_t last, int64_t heads, T* whole) {
  const auto add = [](T& to, T value) { to = static_cast<T>(static_cast<Sum<T>>(to) + static_cast<Sum<T>>(value)); };
  if (heads == 1)
    for (; q < part.count && part.at[q] < last; ++q) add(whole[part.at[q]], part.values[q]);
  else
    for (; q < part.count && part.at[q] < last; ++q)
      for (int64_t h = 0; h < heads; ++h) add(whole[part.at[q] * heads + h], part.values[q * heads + h]);
  return q;
}

// The sum of placed parts. A stretch of the whole at a time, which stays in the nearest cache between the parts.
template <Host E, class T, class I>
void place(const E& exec, int64_t n, int64_t heads, std::initializer_list<Part<T, I>> parts, T* whole) {
  constexpr int64_t stretch = 2048;
  for_each_entry_range(exec, n, heads, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> next;  // entry of each part
    for (const Part<T, I>& part : parts)
      next.push_back(std::lower_bound(part.at, part.at + part.count, static_cast<I>(begin)) - part.at);
    for (int64_t first = begin; first < end; first += stretch) {
      const int64_t last = std::min(first + stretch, end);
      std::fill(whole + first * heads, whole + last * heads, T{});
      auto q = next.begin();
      for (const Part<T, I>& part : parts) *q = add_entries(part, *q, last, heads, whole), ++q;
    }
  });
}

// Under Pool, compiled once: src/cpu/place.cpp.
#define GOSSAMER_PLACE(T, I, ...)                                                        \
  __VA_ARGS__ template void pick(const Pool&, int64_t, const I*, int64_t, const T*, T*); \
  __VA_ARGS__ template void place(const Pool&, int64_t, int64_t, std::initializer_list<Part<T, I>>, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_PLACE, extern)
#endif

}  // namespace gossamer::kernels
