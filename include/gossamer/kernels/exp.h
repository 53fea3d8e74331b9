// SPDX-License-Identifier: BSD-3-Clause
// exp of the lanes of a register, in float or double, NaN and infinities included.
//
//   exp(x) = 2^k exp(r),        k = round(x / ln 2),  r = x - k ln 2,  |r| <= ln 2 / 2
//
// exp(r) is its Taylor polynomial: the first term left out is below 2^-27 of the result in float, 2^-57 in double.
// The error is below 2 units in the last place; results below the normal numbers are 0, those above half the largest
// number are infinity (a softmax needs neither). No branch, no table: a lane
// gives the same bits wherever it stands.
#pragma once
#include <array>
#include <limits>
#include <type_traits>

#include <gossamer/kernels/simd.h>

namespace gossamer {

// What the equation needs of a type: ln 2 in two parts, the first short enough for k times it to be exact.
template <class S>
struct ExpOf;
template <>
struct ExpOf<float> {
  using Bits = uint32_t;
  static constexpr int degree = 7, mantissa = 23, bias = 127;
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f, per_ln2 = 0x1.715476p+0f;
  static constexpr float lowest = -87.3f, highest = 88.0f;
};
template <>
struct ExpOf<double> {
  using Bits = uint64_t;
  static constexpr int degree = 13, mantissa = 52, bias = 1023;
  static constexpr double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b3ap-40, per_ln2 = 0x1.71547652b82fep+0;
  static constexpr double lowest = -708.3, highest = 709.0;
};

template <int n, class S>
[[gnu::always_inline]] inline void exp_lanes(Vec<S, n>& x) {
  using E = ExpOf<S>;
  using Bits = Vec<typename E::Bits, n>;
  constexpr auto coefficients = [] {  // 1 / k!
    std::array<S, E::degree + 1> c{};
    double factorial = 1;
    for (int k = 0; k <= E::degree; factorial *= ++k) c[k] = static_cast<S>(1 / factorial);
    return c;
  }();
  constexpr S shift = S{3} * (typename E::Bits{1} << (E::mantissa - 1));  // adding it leaves k in the lowest bits
  const Vec<S, n> shifted = x * E::per_ln2 + shift, k = shifted - shift;
  const Vec<S, n> r = (x - k * E::ln2_high) - k * E::ln2_low;
  Vec<S, n> sum = r * coefficients[E::degree] + coefficients[E::degree - 1];
  for (int power = E::degree - 2; power >= 0; --power) sum = sum * r + coefficients[power];
  Bits bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + (E::bias - __builtin_bit_cast(typename E::Bits, shift))) << E::mantissa;
  Vec<S, n> power_of_two;
  __builtin_memcpy(&power_of_two, &bits, sizeof bits);
  const Vec<S, n> zero{}, infinity = zero + std::numeric_limits<S>::infinity(), result = sum * power_of_two;
  x = x < E::lowest ? zero : x > E::highest ? infinity : result;
}

}  // namespace gossamer
