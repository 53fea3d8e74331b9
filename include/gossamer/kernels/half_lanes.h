// SPDX-License-Identifier: BSD-3-Clause
// The 16-bit formats (half.h), n lanes at a time, n > 1: bit for bit what their scalar conversions give.
//
//   widen<n>(from, to)     to[k] = float(from[k])
//   narrow<n>(from, to)    to[k] = T(from[k]), rounded
//
// Plain vector arithmetic serves every machine. Eight lanes and more are only ever used where AVX2 and F16C are
// (simd.h), so there the machine's own instructions do it: one for float16 either way.
#pragma once
#include <cstdint>

#include <gossamer/kernels/half.h>
#include <gossamer/kernels/vec.h>

// An intrinsic may be used only in a function compiled for its instruction set; these here are compiled for the
// baseline, until the compiler has inlined them into one that is not. So the instructions stand as text.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__clang__) && !defined(__CUDACC__)
#define GOSSAMER_HALF_INSTRUCTIONS 1
#define GOSSAMER_INSTRUCTION(name, from, to) asm(name " %1, %0" : "=v"(to) : "v"(from))
#else  // clang refuses the text as well, nvcc's front end does not read it, and without optimisation nothing is inlined
#define GOSSAMER_HALF_INSTRUCTIONS 0
#define GOSSAMER_INSTRUCTION(name, from, to)
#endif

namespace gossamer {

template <int n>
constexpr bool half_instructions = GOSSAMER_HALF_INSTRUCTIONS && (n == 8 || n == 16);

template <class To, class From>
[[gnu::always_inline]] inline void copy_bits(const From& from, To& to) {
  static_assert(sizeof to == sizeof from);
  __builtin_memcpy(&to, &from, sizeof to);
}

template <int n>
[[gnu::always_inline]] inline void widen(const bfloat16* from, Vec<float, n>& to) {
  Vec<uint16_t, n> bits;
  Vec<uint32_t, n> wide;
  __builtin_memcpy(&bits, from, sizeof bits);
  if constexpr (half_instructions<n>)
    GOSSAMER_INSTRUCTION("vpmovzxwd", bits, wide);
  else
    wide = __builtin_convertvector(bits, Vec<uint32_t, n>);
  wide <<= 16;
  copy_bits(wide, to);
}

template <int n>
[[gnu::always_inline]] inline void narrow(const Vec<float, n>& from, bfloat16* to) {
  Vec<uint32_t, n> u;
  copy_bits(from, u);
  const Vec<uint32_t, n> rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, nan = Vec<uint32_t, n>{} + 0x7fc0u;
  const Vec<uint16_t, n> bits = __builtin_convertvector(from == from ? rounded : nan, Vec<uint16_t, n>);
  __builtin_memcpy(static_cast<void*>(to), &bits, sizeof bits);
}

template <int n>
[[gnu::always_inline]] inline void widen(const float16* from, Vec<float, n>& to) {
  Vec<uint16_t, n> bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  if constexpr (half_instructions<n>) {
    GOSSAMER_INSTRUCTION("vcvtph2ps", bits, to);
  } else {
    using U = Vec<uint32_t, n>;
    const U u = __builtin_convertvector(bits, U), exponent = u & 0x7c00u, mantissa = u & 0x3ffu;
    const U rest = (u & 0x7fffu) << 13, quiet = U{} + 0x7fc00000u, infinite = U{} + 0x7f800000u;
    U subnormal;
    copy_bits(__builtin_convertvector(mantissa, Vec<float, n>) * 0x1p-24f, subnormal);
    const U special = rest | (mantissa == 0 ? infinite : quiet), normal = rest + ((127u - 15u) << 23);
    const U result = ((u & 0x8000u) << 16) | (exponent == 0 ? subnormal : exponent == 0x7c00u ? special : normal);
    copy_bits(result, to);
  }
}

template <int n>
[[gnu::always_inline]] inline void narrow(const Vec<float, n>& from, float16* to) {
  Vec<uint16_t, n> bits;
  if constexpr (half_instructions<n>) {
    GOSSAMER_INSTRUCTION("vcvtps2ph $0,", from, bits);  // 0: to nearest, ties to even
  } else {
    using U = Vec<uint32_t, n>;
    U u, subnormal;
    copy_bits(from, u);
    const U magnitude = u & 0x7fffffffu;
    Vec<float, n> size;
    copy_bits(magnitude, size);
    copy_bits(size + 0.5f, subnormal);
    subnormal -= 0x3f000000u;
    const U normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const U infinite = U{} + 0x7c00u, nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;
    const U finite = size < 0x1p-14f ? subnormal : size < 65520.0f ? normal : infinite;
    const U result = ((u >> 16) & 0x8000u) | (size == size ? finite : nan);
    bits = __builtin_convertvector(result, Vec<uint16_t, n>);
  }
  __builtin_memcpy(static_cast<void*>(to), &bits, sizeof bits);
}

}  // namespace gossamer
