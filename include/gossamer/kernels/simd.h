// SPDX-License-Identifier: BSD-3-Clause
// Vector code chosen at run time. One source, compiled for each instruction set, picked by what the machine has:
//
//   simd([&]<int Bytes> { kernel<Bytes>(…); });        // Bytes = width of a vector register
//
// The lambda and all it calls are inlined into a function compiled for that set (`flatten` + `target`), so kernels are
// plain C++ over Vec<T, n> and no file needs a compiler flag.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <gossamer/kernels/half_lanes.h>

namespace gossamer {

enum class SimdLevel { baseline, avx2, avx512 };

constexpr const char* name(SimdLevel level) {
  constexpr const char* names[] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(level)];
}

// The best level of this machine; the environment variable GOSSAMER_SIMD=baseline|avx2|avx512 can only lower it.
inline SimdLevel detect_simd_level() {
  SimdLevel level = SimdLevel::baseline;
#if defined(__x86_64__)
#if defined(__clang__)
  constexpr bool f16c = true;  // clang 14 does not know its name; what has AVX2 has it
#else
  const bool f16c = __builtin_cpu_supports("f16c");
#endif
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c) level = SimdLevel::avx2;
  if (level == SimdLevel::avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    level = SimdLevel::avx512;
#endif
  if (const char* wanted = std::getenv("GOSSAMER_SIMD"))
    for (SimdLevel lower : {SimdLevel::baseline, SimdLevel::avx2})
      if (std::string_view(wanted) == name(lower) && lower < level) level = lower;
  return level;
}

inline SimdLevel simd_level() {
  static const SimdLevel level = detect_simd_level();
  return level;
}

#if defined(__x86_64__)
template <class F>
[[gnu::target("avx2,fma,f16c"), gnu::flatten]] void run_avx2(const F& f) {
  f.template operator()<32>();
}
template <class F>
[[gnu::target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq"), gnu::flatten]] void run_avx512(const F& f) {
  f.template operator()<64>();
}
#endif

// Forces a lambda to be inlined. `flatten` does not reach one that the compiler chooses to call, and a lambda that is
// called is compiled for the baseline instruction set.
#define GOSSAMER_INLINED __attribute__((always_inline))

template <class F>
void simd(const F& f) {
#if defined(__x86_64__)
  if (simd_level() == SimdLevel::avx512) return run_avx512(f);
  if (simd_level() == SimdLevel::avx2) return run_avx2(f);
#endif
  f.template operator()<16>();
}

// The same, but for kernels whose rows are so short that wider registers than avx2's would stand half empty.
template <class F>
void simd_narrow(const F& f) {
#if defined(__x86_64__)
  if (simd_level() != SimdLevel::baseline) return run_avx2(f);
#endif
  f.template operator()<16>();
}

// Calls f<lanes>() with the most lanes, up to `most`, that a row of `width` columns fills.
template <int most, class F>
[[gnu::always_inline]] inline void with_lanes(int64_t width, const F& f) {
  if constexpr (most > 1)
    if (width < most) return with_lanes<most / 2>(width, f);
  f.template operator()<most>();
}

// Reads n values as their sum type; writes them back, rounded. Any alignment; n sums fit in a register of the level.
template <int n, class T>
[[gnu::always_inline]] inline void load(const T* from, Vec<Sum<T>, n>& to) {
  if constexpr (n == 1)
    to = static_cast<Sum<T>>(*from);
  else if constexpr (sizeof(T) == sizeof(Sum<T>))
    __builtin_memcpy(&to, from, sizeof to);
  else
    widen<n>(from, to);
}
template <int n, class T>
[[gnu::always_inline]] inline void store(const Vec<Sum<T>, n>& from, T* to) {
  if constexpr (n == 1)
    *to = static_cast<T>(from);
  else if constexpr (sizeof(T) == sizeof(Sum<T>))
    __builtin_memcpy(to, &from, sizeof from);
  else
    narrow<n>(from, to);
}

template <int n, class T>
[[gnu::always_inline]] inline void split(const Vec<T, n>& v, Vec<T, n / 2>& low, Vec<T, n / 2>& high) {
  __builtin_memcpy(&low, &v, sizeof low);
  __builtin_memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
}

// The sum of all lanes, halves first.
template <int n, class T>
[[gnu::always_inline]] inline T sum_lanes(const Vec<T, n>& v) {
  if constexpr (n == 1) {
    return v;
  } else {
    Vec<T, n / 2> low, high;
    split<n, T>(v, low, high);
    low += high;
    return sum_lanes<n / 2, T>(low);
  }
}

// f<0>(), …, f<n - 1>(): a loop the compiler has no say in, so that arrays of vectors stay in registers.
template <class F, int... k>
[[gnu::always_inline]] inline void call_each(const F& f, std::integer_sequence<int, k...>) {
  (f.template operator()<k>(), ...);
}
template <int n, class F>
[[gnu::always_inline]] inline void unrolled(const F& f) {
  call_each(f, std::make_integer_sequence<int, n>());
}
template <int rows, int columns, class F>
[[gnu::always_inline]] inline void unrolled(const F& f) {
  unrolled<rows * columns>([&]<int k> { f.template operator()<k / columns, k % columns>(); });
}

// One step of sums_of_lanes: lanes lie in segments of `segment`; the halves of a's segments are added into the first
// half of those of `sum`, the halves of b's into the second.
template <int segment, int n, class T, int... lane>
[[gnu::always_inline]] inline void add_halves(const Vec<T, n>& a, const Vec<T, n>& b, Vec<T, n>& sum,
                                              std::integer_sequence<int, lane...>) {
#ifndef __CUDACC__  // nvcc's front end loses the pack; it reads this header, but compiles no host kernel
  constexpr int half = segment / 2;
  sum = __builtin_shufflevector(a, b, (lane % segment < half ? lane : n + lane - half)...) +
        __builtin_shufflevector(a, b, (lane % segment < half ? lane + half : n + lane)...);
#endif
}

// sums[k] = the sum of the lanes of v[k], n <= lanes: all n at once cost little more than one. v is used up.
template <int lanes, int n, int segment = n, class T>
[[gnu::always_inline]] inline void sums_of_lanes(Vec<T, lanes> (&v)[n], Vec<T, n>& sums) {
  if constexpr (n == 1) {
    sums = sum_lanes<lanes, T>(v[0]);
  } else if constexpr (lanes > n) {
    Vec<T, lanes / 2> low[n];
    unrolled<n>([&]<int k> {
      Vec<T, lanes / 2> high;
      split<lanes, T>(v[k], low[k], high);
      low[k] += high;
    });
    sums_of_lanes<lanes / 2, n, n, T>(low, sums);
  } else if constexpr (segment > 1) {
    unrolled<segment / 2>([&]<int k> {
      add_halves<segment, n, T>(v[k], v[k + segment / 2], v[k], std::make_integer_sequence<int, n>());
    });
    sums_of_lanes<lanes, n, segment / 2, T>(v, sums);
  } else {
    sums = v[0];
  }
}

}  // namespace gossamer
