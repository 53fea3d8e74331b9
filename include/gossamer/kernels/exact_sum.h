// SPDX-License-Identifier: BSD-3-Clause
// A sum of float64 numbers without any rounding, as one long integer in units of 2^-1088:
//
//   s = Σ_j digit[j] 2^(32 j - 1088),   j = 0 … 68
//
// Every finite number is a multiple of 2^-1074 below 2^1024, so nothing is ever dropped, and additions of integers may
// be made in any order: threads, chunks, processes and permutations cannot change a sum. There is room for 2^63
// numbers. Infinities and NaN are counted apart.
//
// Digits are signed and wider than their 32 bits, so that carries can wait; `carry` makes the form unique: digits
// 0 … 67 in [0, 2^32), the sign in the last. Sums of processes are added number by number, `size` integers each, with
// carries done before: that is one all-reduce.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gossamer::kernels {

class ExactSum {
 public:
  static constexpr int digits = 69, size = digits + 3;

  // q 2^e, e ≥ -1074 and |q| 2^e < 2^1088. Digits grow by less than 2^32: 2^30 such additions need no carry.
  void add(int64_t q, int e) {
    const int at = e + lowest, j = at / 32;
    const __int128 shifted = static_cast<__int128>(q) * (int64_t{1} << at % 32);
    numbers_[j] += static_cast<int64_t>(shifted & mask);
    numbers_[j + 1] += static_cast<int64_t>((shifted >> 32) & mask);
    numbers_[j + 2] += static_cast<int64_t>(shifted >> 64);
  }

  // One number: the definition, against which faster ways are tested.
  void add(double t) {
    const auto bits = std::bit_cast<int64_t>(t);
    const int64_t fraction = bits & ((int64_t{1} << 52) - 1);
    const auto exponent = static_cast<int>((bits >> 52) & 0x7ff);
    if (exponent == 0x7ff) {
      ++numbers_[fraction ? nan : bits < 0 ? below : above];
      return;
    }
    const int64_t q = exponent == 0 ? fraction : fraction | int64_t{1} << 52;
    add(bits < 0 ? -q : q, exponent == 0 ? -1074 : exponent - 1075);
  }

  void add(const ExactSum& other) {
    for (int j = 0; j < size; ++j) numbers_[j] += other.numbers_[j];
  }

  void carry() {
    int64_t carried = 0;
    for (int j = 0; j + 1 < digits; ++j) {
      const int64_t number = numbers_[j] + carried;
      carried = number >> 32;
      numbers_[j] = number & mask;
    }
    numbers_[digits - 1] += carried;
  }

  // The nearest float64, ties to even, which is a function of the exact sum alone. NaN and infinities as in a loop.
  double value() const {
    if (numbers_[nan] || (numbers_[above] && numbers_[below])) return std::numeric_limits<double>::quiet_NaN();
    if (numbers_[above]) return std::numeric_limits<double>::infinity();
    if (numbers_[below]) return -std::numeric_limits<double>::infinity();
    ExactSum s = *this;
    s.carry();
    const bool negative = s.numbers_[digits - 1] < 0;
    if (negative) {
      for (int j = 0; j < digits; ++j) s.numbers_[j] = -s.numbers_[j];
      s.carry();
    }
    int j = digits - 1;
    while (j > 0 && s.numbers_[j] == 0) --j;
    // Three digits have 65 bits or more; of the others it matters only whether they are 0. What is below 2^-1021 has at
    // most 53 bits, so numbers below the normal ones are never rounded twice.
    unsigned __int128 leading = s.numbers_[j];
    for (int more = 0; more < 2 && j > 0; ++more) leading = leading << 32 | s.numbers_[--j];
    const int e = 32 * j - lowest;
    bool rest = false;
    while (j > 0) rest |= s.numbers_[--j] != 0;
    const double size_of_it = std::ldexp(static_cast<double>(leading | static_cast<unsigned>(rest)), e);
    return negative ? -size_of_it : size_of_it;
  }

  const int64_t* data() const { return numbers_.data(); }
  int64_t* data() { return numbers_.data(); }

 private:
  static constexpr int lowest = 1088, above = digits, below = digits + 1, nan = digits + 2;
  static constexpr int64_t mask = 0xffffffff;
  std::array<int64_t, size> numbers_ = {};
};
static_assert(sizeof(ExactSum) == ExactSum::size * sizeof(int64_t));

}  // namespace gossamer::kernels
