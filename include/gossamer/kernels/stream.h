// SPDX-License-Identifier: BSD-3-Clause
// Streaming stores: results that go to memory without passing through the caches.
//
// An ordinary store first reads the line it writes to. For a result that is larger than the last cache this reading is
// one third of all traffic, and the result would push out operands that are still needed.
#pragma once
#include <cstdint>
#if defined(__linux__)
#include <unistd.h>
#endif

#include <gossamer/kernels/simd.h>

// As in half_lanes.h: the instruction stands as text, which neither clang nor nvcc's front end takes, and without
// optimisation nothing would be inlined into a function that may have it.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__clang__) && !defined(__CUDACC__)
#define GOSSAMER_STREAMS 1
#else
#define GOSSAMER_STREAMS 0
#endif

namespace gossamer {

// Bytes of the last cache of this machine; 32 MiB where the system does not say.
inline int64_t last_cache_bytes() {
  static const int64_t bytes = [] {
    int64_t found = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    found = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return found > 0 ? found : int64_t{32} << 20;
  }();
  return bytes;
}

// Whether a result of so many numbers, in rows of `width`, is streamed: it is larger than the cache, and every row is a
// number of whole registers, of the widest kind.
template <class T>
bool streams([[maybe_unused]] const T* result, [[maybe_unused]] int64_t numbers, [[maybe_unused]] int64_t width) {
#if GOSSAMER_STREAMS
  constexpr int64_t widest = 64;
  if constexpr (sizeof(T) == sizeof(Sum<T>))
    return numbers * static_cast<int64_t>(sizeof(T)) > last_cache_bytes() &&
           width * static_cast<int64_t>(sizeof(T)) % widest == 0 && reinterpret_cast<uintptr_t>(result) % widest == 0;
#endif
  return false;
}

// Writes n values past the caches. `to` is aligned to their size.
template <int n, class T>
[[gnu::always_inline]] inline void stream(const Vec<Sum<T>, n>& from, T* to) {
#if GOSSAMER_STREAMS
  using Register = Vec<Sum<T>, n>;
  if constexpr (sizeof(T) != sizeof(Sum<T>) || sizeof(Register) < 16)
    store<n>(from, to);
  else if constexpr (sizeof(Register) == 16)
    asm("movntps %1, %0" : "=m"(*reinterpret_cast<Register*>(to)) : "x"(from));
  else
    asm("vmovntps %1, %0" : "=m"(*reinterpret_cast<Register*>(to)) : "v"(from));
#else
  store<n>(from, to);
#endif
}

// After the last of them, before another thread reads what was written.
inline void streamed() {
#if GOSSAMER_STREAMS
  asm volatile("sfence" ::: "memory");
#endif
}

}  // namespace gossamer
