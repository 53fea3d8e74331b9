// SPDX-License-Identifier: BSD-3-Clause
// Which entries are dropped, as a function of (seed, place) alone: no mask is stored, and every thread count, every
// order and every device draw the same one.
//
//   factor(k) = 0 with probability p, else 1 / (1 - p)        k: the entry's place in the array, e.g. edge · heads +
//   head
//
// The bits are those of SplitMix64 (Steele, Lea and Flood, 2014; it passes BigCrush) at step k: its state is a counter,
// so any step can be had at once. The seed is mixed first, so that neighbouring seeds have nothing in common.
#pragma once
#include <cstdint>

#include <gossamer/kernels/half.h>

namespace gossamer {

// U: uint64_t, or a vector of them.
template <class U>
GOSSAMER_HD constexpr void mix(U& z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
}
GOSSAMER_HD constexpr uint64_t mix_bits(uint64_t z) {
  mix(z);
  return z;
}

struct Dropout {
  static constexpr uint64_t step = 0x9e3779b97f4a7c15u;  // 2^64 over the golden ratio, odd
  uint64_t key = 0, dropped = 0;                         // of 2^53 equally likely numbers, so many are dropped
  double kept = 1;                                       // what the others are multiplied by

  Dropout() = default;
  Dropout(double p, uint64_t seed)
      : key(mix_bits(seed + step)), dropped(static_cast<uint64_t>(p * 0x1p53)), kept(p < 1 ? 1 / (1 - p) : 0) {}

  GOSSAMER_HD bool any() const { return dropped > 0; }
  GOSSAMER_HD bool keeps(int64_t k) const {
    return (mix_bits(key + step * (static_cast<uint64_t>(k) + 1)) >> 11) >= dropped;
  }
  template <class S>
  GOSSAMER_HD S factor(int64_t k) const {
    return keeps(k) ? static_cast<S>(kept) : S{0};
  }
};

}  // namespace gossamer
