// SPDX-License-Identifier: BSD-3-Clause
// The two 16-bit floating-point formats, for storage only: kernels read them as float, add in float and round once at
// the end. Bit for bit the formats of torch, NumPy and CUDA.
#pragma once
#include <bit>
#include <cstdint>

#include <gossamer/kernels/host_device.h>

namespace gossamer {

// The upper half of a float.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  GOSSAMER_HD explicit bfloat16(float value) {
    const uint32_t u = __builtin_bit_cast(uint32_t, value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;   // to nearest, ties to even
    bits = static_cast<uint16_t>(value == value ? rounded : 0x7fc0u);  // rounding could turn a NaN into infinity
  }
  GOSSAMER_HD operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
};

// IEEE binary16.
struct float16 {
  uint16_t bits = 0;

  float16() = default;
  GOSSAMER_HD explicit float16(float value) {
    constexpr float tiny = 0x1p-14f, huge = 65520.0f;  // smallest normal; what rounds to infinity
    const uint32_t u = __builtin_bit_cast(uint32_t, value);
    const uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    const float size = __builtin_bit_cast(float, magnitude);
    uint32_t half;
    if (!(size == size))
      half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // quiet, and what fits of the payload: as processors do it
    else if (size >= huge)
      half = 0x7c00u;
    else if (size < tiny)  // subnormal: adding 0.5 leaves the rounded result in the lowest bits
      half = __builtin_bit_cast(uint32_t, size + 0.5f) - 0x3f000000u;
    else
      half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    bits = static_cast<uint16_t>(sign | half);
  }
  GOSSAMER_HD operator float() const {
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits & 0x7c00u, mantissa = bits & 0x3ffu;
    const uint32_t rest = (exponent | mantissa) << 13;
    const uint32_t subnormal = __builtin_bit_cast(uint32_t, static_cast<float>(mantissa) * 0x1p-24f);
    const uint32_t special = rest | (mantissa == 0 ? 0x7f800000u : 0x7fc00000u);  // infinity; NaN, quiet
    const uint32_t normal = rest + ((127 - 15) << 23);
    return __builtin_bit_cast(float, sign | (exponent == 0 ? subnormal : exponent == 0x7c00u ? special : normal));
  }
};

// The type sums are kept in.
template <class T>
struct AccumulateIn {
  using type = T;
};
template <>
struct AccumulateIn<bfloat16> {
  using type = float;
};
template <>
struct AccumulateIn<float16> {
  using type = float;
};
template <class T>
using Sum = typename AccumulateIn<T>::type;

}  // namespace gossamer
