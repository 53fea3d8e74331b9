// SPDX-License-Identifier: BSD-3-Clause
// Reading ahead. Entry p of a sparse row names the dense row it needs, so a kernel that is at entry p can ask for the
// dense row of entry p + entries_ahead: by the time it gets there, the memory has answered.
#pragma once
#include <cstdint>

namespace gossamer {

constexpr int64_t entries_ahead = 12;

// Dense operands larger than this do not stay in the processor's own cache, and reading ahead pays.
constexpr int64_t near_bytes = 1 << 20;

template <class T>
bool is_far(int64_t numbers) {
  return numbers * static_cast<int64_t>(sizeof(T)) > near_bytes;
}

// Numbers that are read one after the other, with nothing beside them: the processor sees one stream, and asks for too
// little of it. This far ahead, a kernel asks itself.
constexpr int64_t bytes_ahead = 2048;
template <class T>
[[gnu::always_inline]] inline void prefetch_ahead(const T* X, int64_t direction = 1) {
  __builtin_prefetch(reinterpret_cast<const char*>(X) + direction * bytes_ahead);
}

// Asks for `n` numbers at X, one request a cache line.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* X, int64_t n) {
  constexpr int64_t line = 64 / sizeof(T);
  for (int64_t k = 0; k < n; k += line) __builtin_prefetch(X + k);
}

}  // namespace gossamer
