// SPDX-License-Identifier: BSD-3-Clause
// Which entries are dropped, as a function of (seed, place) alone: no mask is stored, and every thread count, every
// order and every device draw the same one.
//
//   factor(k) = 0 with probability p, else 1 / (1 - p)
//
// k is the number's place in the array. A head of an entry of a pattern has k = p · heads + head, p being the entry's
// place, or keys[p] in its stead: then the mask does not depend on where the entry stands, or in which process.
//
// The bits are those of SplitMix64 (Steele, Lea and Flood, 2014; it passes BigCrush) at step k: its state is a counter,
// so any step can be had at once. The seed is mixed first, so that neighbouring seeds have nothing in common.
#pragma once
#include <cstdint>
#include <type_traits>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>

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
  const int64_t* device_seed = nullptr;                  // in place of `key`: a seed that only the device has read
  const int64_t* keys = nullptr;                         // of the entries, in place of their places

  Dropout() = default;
  Dropout(double p, uint64_t seed)
      : key(mix_bits(seed + step)), dropped(static_cast<uint64_t>(p * 0x1p53)), kept(p < 1 ? 1 / (1 - p) : 0) {}
  Dropout(double p, const int64_t* seed) : Dropout(p, uint64_t{0}) { device_seed = seed; }

  GOSSAMER_HD bool any() const { return dropped > 0; }
  GOSSAMER_HD bool keeps(int64_t k) const {
    const uint64_t start = device_seed ? mix_bits(static_cast<uint64_t>(*device_seed) + step) : key;
    return (mix_bits(start + step * (static_cast<uint64_t>(k) + 1)) >> 11) >= dropped;
  }
  template <class S>
  GOSSAMER_HD S factor(int64_t k) const {
    return keeps(k) ? static_cast<S>(kept) : S{0};
  }
  // k of the first head of entry p. Keys are any 64 bits, and so are their multiples.
  GOSSAMER_HD int64_t first(int64_t p, int64_t heads) const {
    return static_cast<int64_t>(static_cast<uint64_t>(keys ? keys[p] : p) * static_cast<uint64_t>(heads));
  }
};

// factors[k] = dropout.factor(first + k) for k < n, a register of them at a time. The last register is written whole,
// so `factors` has room for lanes - 1 more.
template <int lanes, class S>
[[gnu::always_inline]] inline void dropout_factors(const Dropout& dropout, int64_t first, int64_t n, S* factors) {
  constexpr int l = lanes * sizeof(S) / sizeof(uint64_t);
  Vec<uint64_t, l> steps, z;
  for (int k = 0; k < l; ++k) steps[k] = Dropout::step * k;
  for (int64_t k = 0; k < n; k += l) {
    z = steps + (dropout.key + Dropout::step * (static_cast<uint64_t>(first) + static_cast<uint64_t>(k + 1)));
    mix(z);
    z >>= 11;
    const auto keeps =
        __builtin_convertvector(z >= dropout.dropped, Vec<std::conditional_t<sizeof(S) == 4, int32_t, int64_t>, l>);
    const Vec<S, l> kept = Vec<S, l>{} + static_cast<S>(dropout.kept), none{};
    store<l>(keeps ? kept : none, factors + k);
  }
}

// The factors of the entries p … p + n - 1 by their keys, as (n, heads). Not inlined: what has no keys is to have none
// of this code.
template <class S>
[[gnu::noinline]] void keyed_factors(const Dropout& dropout, int64_t p, int64_t n, int64_t heads, S* factors) {
  for (int64_t k = 0; k < n; ++k)
    for (int64_t h = 0; h < heads; ++h) factors[k * heads + h] = dropout.factor<S>(dropout.first(p + k, heads) + h);
}

// The factors of the entries p … p + n - 1, as (n, heads), with room for lanes - 1 more.
template <int lanes, class S>
[[gnu::always_inline]] inline void entry_factors(const Dropout& dropout, int64_t p, int64_t n, int64_t heads,
                                                 S* factors) {
  if (dropout.keys) return keyed_factors(dropout, p, n, heads, factors);
  dropout_factors<lanes>(dropout, p * heads, n * heads, factors);
}

namespace kernels {

// The factors of so many entries, as (entries, heads).
template <class S>
[[gnu::weak]] void dropout_mask(Cuda, const Dropout& dropout, int64_t entries, int64_t heads, S* factors);

}  // namespace kernels
}  // namespace gossamer
