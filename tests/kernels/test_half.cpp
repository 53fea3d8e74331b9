// SPDX-License-Identifier: BSD-3-Clause
// The 16-bit formats against their definition, in double. With e exponent bits, f fraction bits, b = 2^(e-1) - 1:
//
//   value = (-1)^s · 2^(E - b) · (1 + F / 2^f)      E > 0            2^(1 - b) · F / 2^f      E = 0 (subnormal)
//   rounding: to the nearest multiple of 2^(max(exponent, 1 - b) - f), ties to even; beyond the largest, infinity
#include "dense.h"

namespace gossamer::test {
namespace {

template <class H>
struct Format;
template <>
struct Format<bfloat16> {
  static constexpr int exponent = 8, fraction = 7;
};
template <>
struct Format<float16> {
  static constexpr int exponent = 5, fraction = 10;
};

template <class H>
H from_bits(uint32_t bits) {
  H half;
  half.bits = static_cast<uint16_t>(bits);
  return half;
}

template <class H>
double decoded(uint32_t bits) {
  constexpr int f = Format<H>::fraction, bias = (1 << (Format<H>::exponent - 1)) - 1;
  const int exponent = static_cast<int>(bits & 0x7fffu) >> f, fraction = static_cast<int>(bits) & ((1 << f) - 1);
  double size = exponent == 0 ? std::ldexp(fraction, 1 - bias - f)
                              : std::ldexp(std::ldexp(1.0, f) + fraction, exponent - bias - f);
  if (exponent == (1 << Format<H>::exponent) - 1) size = fraction == 0 ? INFINITY : NAN;
  return std::copysign(size, (bits & 0x8000u) != 0 ? -1.0 : 1.0);
}

template <class H>
double nearest(double value) {
  constexpr int f = Format<H>::fraction, bias = (1 << (Format<H>::exponent - 1)) - 1;
  if (value == 0 || !std::isfinite(value)) return value;
  const double quantum = std::ldexp(1.0, std::max(std::ilogb(value), 1 - bias) - f);
  const double result = std::nearbyint(value / quantum) * quantum;
  return std::abs(result) < std::ldexp(1.0, bias + 1) ? result : std::copysign(INFINITY, value);
}

// Quiet on success: called some 600 000 times.
template <class H>
void expect_rounds(float value) {
  const double got = decoded<H>(H(value).bits), want = nearest<H>(value);
  if (std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want)) return;
  ADD_FAILURE() << value << " (" << std::hexfloat << value << ") is rounded to " << got << ", not " << want;
}

template <class H>
struct Half : testing::Test {
  static constexpr uint32_t infinity = ((1u << Format<H>::exponent) - 1) << Format<H>::fraction;
};
using Halves = testing::Types<bfloat16, float16>;
TYPED_TEST_SUITE(Half, Halves);

TYPED_TEST(Half, EveryPatternReadsAsItsValue) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const double got = static_cast<float>(from_bits<TypeParam>(bits)), want = decoded<TypeParam>(bits);
    const bool same = std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
    ASSERT_TRUE(same) << "bits " << bits << " read as " << got << ", not " << want;
  }
}

TYPED_TEST(Half, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const TypeParam back(static_cast<float>(from_bits<TypeParam>(bits)));
    if ((bits & 0x7fffu) <= this->infinity)
      ASSERT_EQ(back.bits, bits);
    else  // not the payload, but a NaN
      ASSERT_TRUE(std::isnan(decoded<TypeParam>(back.bits))) << "bits " << bits;
  }
}

// Each value, the tie between it and the next, and the floats on both sides of the tie. Ends with the tie between the
// largest value and what would follow it: the first number that is infinite.
TYPED_TEST(Half, EveryTieGoesToEven) {
  for (uint32_t bits = 0; bits < this->infinity; ++bits) {
    const double low = decoded<TypeParam>(bits), before = bits > 0 ? decoded<TypeParam>(bits - 1) : low;
    const double high = bits + 1 < this->infinity ? decoded<TypeParam>(bits + 1) : low + (low - before);
    const auto tie = static_cast<float>(low / 2 + high / 2);
    ASSERT_EQ(tie, low / 2 + high / 2);
    for (const float value : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, INFINITY)}) {
      expect_rounds<TypeParam>(value);
      expect_rounds<TypeParam>(-value);
    }
    ASSERT_FALSE(this->HasFailure()) << "after bits " << bits;
  }
}

TYPED_TEST(Half, AnyFloat) {
  Random random(5);
  for (int k = 0; k < 200000; ++k) {
    expect_rounds<TypeParam>(__builtin_bit_cast(float, static_cast<uint32_t>(random.below(int64_t{1} << 32))));
    expect_rounds<TypeParam>(static_cast<float>(std::ldexp(random.real(), static_cast<int>(random.below(48)) - 30)));
    ASSERT_FALSE(this->HasFailure());
  }
}

TYPED_TEST(Half, Extremes) {
  using Float = std::numeric_limits<float>;
  for (const float value : {0.0f, Float::denorm_min(), Float::min(), std::nextafter(Float::min(), 0.0f), Float::max(),
                            Float::infinity(), Float::quiet_NaN(), 65503.0f, 65504.0f, 65519.99f, 65520.0f, 65536.0f}) {
    expect_rounds<TypeParam>(value);
    expect_rounds<TypeParam>(-value);
  }
  EXPECT_EQ(TypeParam(Float::max()).bits, this->infinity);
  EXPECT_EQ(TypeParam(-Float::max()).bits, 0x8000u | this->infinity);
  EXPECT_EQ(TypeParam(-0.0f).bits, 0x8000u);
  EXPECT_EQ(TypeParam().bits, 0u);
}

// A payload in the bits that are cut off must not leave an infinity behind, nor one of all ones wrap around to zero.
TYPED_TEST(Half, NanStaysNan) {
  for (const uint32_t bits :
       {0x7f800001u, 0x7f801fffu, 0x7f80ffffu, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu})
    EXPECT_TRUE(std::isnan(decoded<TypeParam>(TypeParam(__builtin_bit_cast(float, bits)).bits))) << bits;
}

TYPED_TEST(Half, IsTwoBytesAndSumsInFloat) {
  static_assert(sizeof(TypeParam) == 2 && std::is_same_v<Sum<TypeParam>, float>);
  static_assert(std::is_same_v<Sum<float>, float> && std::is_same_v<Sum<double>, double>);
}

// Written down by hand, in case both definitions above were wrong together.
TEST(HalfByHand, KnownBits) {
  EXPECT_EQ(bfloat16(1.0f).bits, 0x3f80u);
  EXPECT_EQ(bfloat16(-2.5f).bits, 0xc020u);
  EXPECT_EQ(bfloat16(3.14159265f).bits, 0x4049u);
  EXPECT_EQ(float16(1.0f).bits, 0x3c00u);
  EXPECT_EQ(float16(-2.5f).bits, 0xc100u);
  EXPECT_EQ(float16(3.14159265f).bits, 0x4248u);
  EXPECT_EQ(float16(65504.0f).bits, 0x7bffu);
  EXPECT_EQ(float16(0x1p-24f).bits, 0x0001u);
  EXPECT_EQ(float16(0x1p-25f).bits, 0x0000u);  // a tie, to even
  EXPECT_EQ(float16(0x1.8p-24f).bits, 0x0002u);
  EXPECT_EQ(float16(0x1p-14f).bits, 0x0400u);
}

}  // namespace
}  // namespace gossamer::test
