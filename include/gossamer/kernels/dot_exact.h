// SPDX-License-Identifier: BSD-3-Clause
// Dot products of the columns of two blocks (n, k), contiguous, without any rounding but that of the products:
//
//   sums[c] += Σ_i round(u[i, c] v[i, c])        O(n k); float32 products are not rounded at all
//
// The sum is exact (exact_sum.h), hence the same bits for every order, number of threads, chunking and partition over
// processes. There is nothing to prove about what is dropped: nothing is.
//
// One pass over memory, by pieces that stay in the first cache. With |t| < 2^E for all products t of a piece, and M the
// number 1.5 · 2^(52 + e),
//
//   a = t + M                  is t rounded to a multiple of 2^e, plus M: the last place of M is 2^e
//   bits(a) - bits(M)          is that multiple, as an integer: at most 2^50 if e = E - 50
//   t - (a - M)                is the rest, exactly: a multiple of t's last place and not larger than t; at most
//   2^(e-1)
//
// so two such steps take the upper 101 bits of every product into integers, whose sums over a piece (2048 · 2^50) fit
// into 64 bits. Rests that are not 0 then, of numbers 2^48 times smaller than the largest, go round again.
#pragma once
#include <algorithm>
#include <vector>

#include <gossamer/kernels/exact_sum.h>
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>

namespace gossamer::kernels {

constexpr int64_t exact_piece = 2048;  // numbers; also the most columns that are summed together

// The definition as a loop. Tests compare the tuned form with it.
namespace plain {
template <class T>
void dot_exact(int64_t n, int64_t k, const T* u, const T* v, ExactSum* sums) {
  for (int64_t e = 0; e < n * k; ++e) sums[e % k].add(static_cast<double>(u[e]) * static_cast<double>(v[e]));
}
}  // namespace plain

template <int lanes, class T>
[[gnu::always_inline]] inline void load_doubles(const T* from, Vec<double, lanes>& to) {
  Vec<T, lanes> own;
  __builtin_memcpy(&own, from, sizeof own);
  if constexpr (sizeof(T) == sizeof(double))
    to = own;
  else
    to = __builtin_convertvector(own, Vec<double, lanes>);
}

// The largest |x| that was shown, up to a factor below 2: the upper halves of the numbers' bits, which are in the order
// of the numbers, infinity and NaN last. Halves, because 32-bit integers can be compared in vectors everywhere.
template <int lanes>
struct Largest {
  using Words = Vec<int32_t, 2 * lanes>;
  Words most = {};

  [[gnu::always_inline]] void show(const Vec<double, lanes>& x) {
    constexpr int64_t upper = 0x7fffffff00000000;
    const Words size = __builtin_bit_cast(Words, __builtin_bit_cast(Vec<int64_t, lanes>, x) & upper);
    most = size > most ? size : most;
  }
  // A bound: all |x| < 2^bound, if bound is at most 1024.
  [[gnu::always_inline]] int bound() const {
    int64_t each[lanes], largest = 0;
    __builtin_memcpy(each, &most, sizeof most);
    for (const int64_t one : each) largest = std::max(largest, one);
    return static_cast<int>(largest >> 52) - 1022;
  }
};

// t = u v, with zeros up to a whole vector; a bound of them. Products are stored before anything is added to them: no
// compiler may fuse the two.
template <int lanes, class T>
[[gnu::always_inline]] inline int products(int64_t count, const T* u, const T* v, double* t) {
  Largest<lanes> largest;
  for (int64_t p = 0; p < count; p += lanes) {
    Vec<double, lanes> a = {}, b = {};
    if (p + lanes <= count)
      load_doubles<lanes>(u + p, a), load_doubles<lanes>(v + p, b);
    else
      for (int64_t l = 0; l < count - p; ++l)
        a[l] = static_cast<double>(u[p + l]), b[l] = static_cast<double>(v[p + l]);
    const Vec<double, lanes> x = a * b;
    largest.show(x);
    __builtin_memcpy(t + p, &x, sizeof x);
  }
  return largest.bound();
}

// The integers of two steps, by lanes, of numbers that come one vector after the other.
template <int lanes>
struct TwoSteps {
  using Lanes = Vec<double, lanes>;
  using Bits = Vec<uint64_t, lanes>;  // wraps around: the bits of M are subtracted in the end

  int e0, e1;
  double M0, M1;
  Bits first = {}, second = {}, rests = {};

  // For numbers below 2^top.
  [[gnu::always_inline]] explicit TwoSteps(int top)
      : e0(std::max(top - 50, -1074)), e1(std::max(top - 101, -1074)), M0(unit(e0)), M1(unit(e1)) {}
  static constexpr double unit(int e) {
    return std::bit_cast<double>(static_cast<int64_t>(e + 1075) << 52 | int64_t{1} << 51);
  }

  // x becomes its rest.
  [[gnu::always_inline]] void take(Lanes& x) {
    const Lanes a = x + M0;
    x -= a - M0;
    const Lanes b = x + M1;
    x -= b - M1;
    first += __builtin_bit_cast(Bits, a);
    second += __builtin_bit_cast(Bits, b);
    rests |= __builtin_bit_cast(Bits, x);
  }
  [[gnu::always_inline]] bool exhausted() const {
    uint64_t each[lanes], any = 0;
    __builtin_memcpy(each, &rests, sizeof rests);
    for (const uint64_t one : each) any |= one << 1;  // -0 is 0
    return any == 0;
  }
  // Lane l to sums[l % width], after so many vectors.
  [[gnu::always_inline]] void add_to(ExactSum* sums, int64_t width, int64_t vectors) const {
    uint64_t high[lanes], low[lanes];
    __builtin_memcpy(high, &first, sizeof first);
    __builtin_memcpy(low, &second, sizeof second);
    for (int64_t l = width; l < lanes; ++l) high[l % width] += high[l], low[l % width] += low[l];
    const auto count = static_cast<uint64_t>(vectors) * static_cast<uint64_t>(std::max<int64_t>(lanes / width, 1));
    for (int64_t c = 0; c < std::min<int64_t>(width, lanes); ++c) {
      sums[c].add(static_cast<int64_t>(high[c] - count * std::bit_cast<uint64_t>(M0)), e0);
      sums[c].add(static_cast<int64_t>(low[c] - count * std::bit_cast<uint64_t>(M1)), e1);
    }
  }
};

// Two steps of `vectors` vectors at t, t + stride, …; the rests remain in t. Whether all of them are 0.
template <int lanes>
[[gnu::always_inline]] inline bool take_two_steps(int64_t vectors, int64_t stride, int top, double* t, int64_t width,
                                                  ExactSum* sums) {
  TwoSteps<lanes> steps(top);
  for (int64_t s = 0; s < vectors; ++s) {
    Vec<double, lanes> x;
    __builtin_memcpy(&x, t + s * stride, sizeof x);
    steps.take(x);
    __builtin_memcpy(t + s * stride, &x, sizeof x);
  }
  steps.add_to(sums, width, vectors);
  return steps.exhausted();
}

constexpr int highest_top = 1021;  // M would be infinite for numbers of 2^1021 and more

// A piece of rows of `width`, whatever its numbers. A bound of its products.
template <int lanes, class T>
[[gnu::always_inline]] inline int add_piece(int64_t count, int64_t width, const T* u, const T* v, ExactSum* sums) {
  alignas(64) double t[exact_piece];
  const int bound = products<lanes>(count, u, v, t);
  if (bound > highest_top) {  // infinities and NaN among them
    for (int64_t p = 0; p < count; ++p) sums[p % width].add(t[p]);
    return bound;
  }
  bool done = false;
  for (int top = bound; !done; top -= 101) {
    if (lanes % width == 0) {
      done = take_two_steps<lanes>((count + lanes - 1) / lanes, lanes, top, t, width, sums);
      continue;
    }
    done = true;
    int64_t c = 0;
    while (c < width)
      with_lanes<lanes>(width - c, [&]<int some>() GOSSAMER_INLINED {
        done &= take_two_steps<some>(count / width, width, top, t + c, some, sums + c);
        c += some;
      });
  }
  return bound;
}

// The same for whole vectors whose products are believed to be below 2^top: without a detour over memory. `believed` is
// false, and the sums are as they were, if a product was larger or two steps were not enough.
template <int lanes, class T>
[[gnu::always_inline]] inline int add_believed(int64_t count, int64_t width, int top, const T* u, const T* v,
                                               ExactSum* sums, bool& believed) {
  TwoSteps<lanes> steps(top);
  Largest<lanes> largest;
  for (int64_t p = 0; p < count; p += lanes) {
    Vec<double, lanes> a, b;
    load_doubles<lanes>(u + p, a), load_doubles<lanes>(v + p, b);
    Vec<double, lanes> x = a * b;  // shown as well as added, so it is rounded, not fused with an addition
    largest.show(x);
    steps.take(x);
  }
  believed = largest.bound() <= top && steps.exhausted();
  if (believed) steps.add_to(sums, width, count / lanes);
  return largest.bound();
}

// Rows of k columns, on one thread. `top`: what is believed of the next piece, namely what was true of the last one.
constexpr int nothing_believed = 10000;
template <int lanes, class T>
[[gnu::always_inline]] inline void add_dots_exactly(int64_t rows, int64_t k, const T* u, const T* v, ExactSum* sums,
                                                    int& top) {
  constexpr int64_t few = 64;  // numbers that tell enough of a first piece
  constexpr int margin = 4;
  for (int64_t i = 0; i < rows;) {
    const int64_t piece = top == nothing_believed ? few : exact_piece;
    const int64_t taken = std::min(std::max<int64_t>(piece / k, 1), rows - i);
    for (int64_t c = 0; c < k; c += exact_piece) {  // more than once only if a row is longer than a piece
      const int64_t width = std::min(exact_piece, k - c), count = taken * width;
      const T *from_u = u + i * k + c, *from_v = v + i * k + c;
      int64_t done = 0;
      int bound = -1022;
      if (lanes % width == 0 && top <= highest_top) {
        bool believed = false;
        bound = add_believed<lanes>(count - count % lanes, width, top, from_u, from_v, sums + c, believed);
        if (believed) done = count - count % lanes;
      }
      if (done < count)
        bound = std::max(bound, add_piece<lanes>(count - done, width, from_u + done, from_v + done, sums + c));
      top = std::min(bound + margin, highest_top);
    }
    i += taken;
  }
}

template <Host E, class T>
void dot_exact(const E& exec, int64_t n, int64_t k, const T* u, const T* v, ExactSum* sums) {
  if (n == 0 || k == 0) return;
  constexpr int64_t worth_a_thread = 16384;
  const int64_t parts =
      std::clamp<int64_t>(n * k / worth_a_thread, 1, std::min(n, std::max<int64_t>(exec.threads(), 1)));
  std::vector<ExactSum> of_parts(parts * k);
  const auto part = [&](int64_t p) {
    const int64_t begin = n * p / parts, end = n * (p + 1) / parts;
    int top = nothing_believed;
    simd([&]<int Bytes> {
      add_dots_exactly<Bytes / 8>(end - begin, k, u + begin * k, v + begin * k, of_parts.data() + p * k, top);
    });
  };
  if (parts == 1)
    part(0);
  else
    exec.parallel_for(parts, part);
  for (int64_t p = 0; p < parts; ++p)
    for (int64_t c = 0; c < k; ++c) sums[c].add(of_parts[p * k + c]);
  for (int64_t c = 0; c < k; ++c) sums[c].carry();
}

// Under Pool, compiled once: src/cpu/dot_exact.cpp.
#define GOSSAMER_DOT_EXACT(T, ...) \
  __VA_ARGS__ template void dot_exact(const Pool&, int64_t, int64_t, const T*, const T*, ExactSum*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_DOT_EXACT(float, extern)
GOSSAMER_DOT_EXACT(double, extern)
#endif

}  // namespace gossamer::kernels
