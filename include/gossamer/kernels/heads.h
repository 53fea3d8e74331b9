// SPDX-License-Identifier: BSD-3-Clause
// Many heads at once. A row is (heads, width) numbers, cut into registers within each head; what is one number a head,
// entry after entry, is an array (n, heads), taken a register at a time whatever the number of heads.
//
// Heads are narrow, so most of a loop over their columns is the loop itself. The usual widths are therefore known to
// the compiler: with_width gives a kernel the width as a constant or, if it is another one, as a number.
#pragma once
#include <numeric>
#include <type_traits>
#include <vector>

#include <gossamer/kernels/simd.h>

namespace gossamer::kernels {

// Calls f(width), width being a constant (std::integral_constant) if it is a usual one. Each takes the compiler a
// while, so they are for what networks are trained in: float, and 16-bit numbers where registers are longest.
template <int bytes, class T, class I, class F>
[[gnu::always_inline]] inline void with_width(int64_t width, const F& f) {
  constexpr bool trained = std::is_same_v<T, float> ? bytes > 16 : std::is_same_v<Sum<T>, float> && bytes > 32;
  if constexpr (trained && std::is_same_v<I, int32_t>) {
    if (width == 8) return f(std::integral_constant<int64_t, 8>());
    if (width == 16) return f(std::integral_constant<int64_t, 16>());
    if (width == 32) return f(std::integral_constant<int64_t, 32>());
  }
  f(width);
}
template <class W>
constexpr int64_t known = 0;
template <int64_t width>
constexpr int64_t known<std::integral_constant<int64_t, width>> = width;

// Calls f<l>(k) for k, k + l, … up to n: `lanes` at a time, then half as many, …, then one.
template <int lanes, class F>
[[gnu::always_inline]] inline void for_each_lanes(int64_t n, const F& f, int64_t k = 0) {
  for (; k + lanes <= n; k += lanes) f.template operator()<lanes>(k);
  if constexpr (lanes > 1)
    if (k < n) for_each_lanes<lanes / 2>(n, f, k);
}

// Calls f<l, vectors, together>(h, c) for tiles of the columns c … c + l · vectors - 1 of the heads h … h + together -
// 1 until all are done. A tile has several vectors: one sum alone would not keep the adders busy.
template <int lanes, class W, class F>
[[gnu::always_inline]] inline void for_each_tile(int64_t heads, const W& width, const F& f) {
  int64_t h = 0;
  if constexpr (known<W> > 0) {
    constexpr int l = std::min<int64_t>(lanes, known<W>), vectors = known<W> / l, together = 4;
    for (; h + together <= heads; h += together) f.template operator()<l, vectors, together>(h, int64_t{0});
  }
  for (; h < heads; ++h) {
    int64_t c = 0;
    for (; c + 4 * lanes <= width; c += 4 * lanes) f.template operator()<lanes, 4, 1>(h, c);
    for_each_lanes<lanes>(width, [&]<int l>(int64_t at) GOSSAMER_INLINED { f.template operator()<l, 1, 1>(h, at); }, c);
  }
}

// to[k] = from[k], of two types that are added up in the same one.
template <int lanes, class From, class To>
[[gnu::always_inline]] inline void copy_lanes(const From* from, int64_t n, To* to) {
  for_each_lanes<lanes>(n, [&]<int l>(int64_t k) {
    Vec<Sum<From>, l> v;
    load<l>(from + k, v);
    store<l>(v, to + k);
  });
}

// A row of n numbers in the type they are added up in, for loops that read it once an entry: the row itself, or a copy.
template <int lanes, class T>
class WideRow {
 public:
  explicit WideRow(int64_t n) : n_(n), copy_(std::is_same_v<T, Sum<T>> ? 0 : n) {}

  // Valid until the next call.
  [[gnu::always_inline]] const Sum<T>* of(const T* row) {
    if constexpr (std::is_same_v<T, Sum<T>>) {
      return row;
    } else {
      copy_lanes<lanes>(row, n_, copy_.data());
      return copy_.data();
    }
  }

 private:
  const int64_t n_;
  std::vector<Sum<T>> copy_;
};

// Σ_c term(c) over the columns c of one head: term<l>(c, sum) adds those of c … c + l - 1 to the lanes of sum.
template <int lanes, class S, class Term>
[[gnu::always_inline]] inline S sum_columns(int64_t width, const Term& term, int64_t c = 0) {
  S total = 0;
  if (c + lanes <= width) {
    Vec<S, lanes> sum{};
    for (; c + lanes <= width; c += lanes) term.template operator()<lanes>(c, sum);
    total = sum_lanes<lanes, S>(sum);
  }
  if constexpr (lanes > 1)
    if (c < width) total += sum_columns<lanes / 2, S>(width, term, c);
  return total;
}

// sums[h] = Σ_c term(h · width + c), over the columns c of each head.
template <int lanes, class S, class W, class Term>
[[gnu::always_inline]] inline void sum_heads(int64_t heads, const W& width, const Term& term, S* sums) {
  int64_t h = 0;
  if constexpr (known<W> > 0) {
    constexpr int l = std::min<int64_t>(lanes, known<W>), vectors = known<W> / l, together = std::min(l, 8);
    for (; h + together <= heads; h += together) {
      Vec<S, l> v[together];
      unrolled<together>([&]<int k> {
        v[k] = Vec<S, l>{};
        unrolled<vectors>([&]<int n> { term.template operator()<l>((h + k) * width + n * l, v[k]); });
      });
      Vec<S, together> sum;
      sums_of_lanes<l, together, together, S>(v, sum);
      store<together>(sum, sums + h);
    }
  }
  for (; h < heads; ++h)
    sums[h] = sum_columns<lanes, S>(
        width, [&]<int l>(int64_t c, Vec<S, l>& sum) { term.template operator()<l>(h * width + c, sum); });
}

// sums[h] = a[h] · b[h] for rows a, b of (heads, width).
template <int lanes, class U, class T, class W>
[[gnu::always_inline]] inline void dot_heads(const U* a, const T* b, int64_t heads, const W& width, Sum<T>* sums) {
  const auto term = [=]<int l>(int64_t c, Vec<Sum<T>, l>& sum) {
    Vec<Sum<T>, l> u, v;
    load<l>(a + c, u);
    load<l>(b + c, v);
    sum += u * v;
  };
  sum_heads<lanes, Sum<T>>(heads, width, term, sums);
}

// After so many numbers of an (n, heads) array the heads come round to the same lane.
template <int lanes>
inline int64_t period_of(int64_t heads) {
  return std::lcm(heads, int64_t{lanes});
}

// repeated[q] = of_head[q % heads], for q < period.
template <class S>
inline void repeat(const S* of_head, int64_t heads, int64_t period, S* repeated) {
  for (int64_t q = 0; q < period; q += heads)
    for (int64_t h = 0; h < heads; ++h) repeated[q + h] = of_head[h];
}

}  // namespace gossamer::kernels
