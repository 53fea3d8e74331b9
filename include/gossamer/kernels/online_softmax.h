// SPDX-License-Identifier: BSD-3-Clause
// What the two kinds of graph attention share: rows of scores that are never stored.
//
//   Z[i, h, :] = Σ_p m[p, h] exp(e[p, h] - lse[i, h]) X[indices[p], h, :],    lse[i, h] = log Σ_p exp(e[p, h])
//
// p over row i; m: dropout (dropout.h), or 1. The scores e come in blocks of `edge_block` entries, made by the caller;
// the largest one so far and the sums scaled by it are kept from block to block (online softmax), so no finite score
// overflows. A row without entries gives Z = 0. One thread owns one row: bitwise the same for every thread count.
#pragma once
#include <cmath>
#include <vector>

#include <gossamer/kernels/dropout.h>
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/exp.h>
#include <gossamer/kernels/heads.h>
#include <gossamer/kernels/pieces.h>
#include <gossamer/kernels/prefetch.h>

namespace gossamer::kernels {

// What the forward of either kind needs on a CUDA device, for the pieces of long rows: (places, heads, 2 + width).
inline int64_t attention_cuda_scratch(int64_t nnz, int64_t heads, int64_t width) {
  return piece_places(nnz) * heads * (2 + width);
}

// Entries of a row at a time: 32 rows of 128 floats stay in the nearest cache. Numbers of a block are (n, heads).
constexpr int64_t edge_block = 32;

// Numbers of a block, and room to fill its last register.
template <int lanes>
inline int64_t block_size(int64_t heads) {
  return edge_block * heads + lanes;
}

// Asks for the row of X that the entry `entries_ahead` after p needs.
template <class T, class I>
[[gnu::always_inline]] inline void prefetch_row(const PatternView<I>& A, int64_t p, const T* X, int64_t width) {
  prefetch(X + A.indices[std::min(p + entries_ahead, A.nnz - 1)] * width, width);
}

// Rows that are read in two passes over a block of entries are asked for in two halves, one a pass. Asked for at once
// they would queue, and the memory would rest for as long as the second pass takes. This is the first half.
template <class T, class I>
[[gnu::always_inline]] inline void prefetch_first_half(const PatternView<I>& A, int64_t p, const T* X, int64_t width) {
  prefetch(X + A.indices[std::min(p + entries_ahead, A.nnz - 1)] * width, width / 2);
}

// The columns of the entries `entries_ahead` after p … p + n - 1; null if there are not so many, or if the rows they
// need are in the cache anyway (not `far`).
template <class I>
[[gnu::always_inline]] inline const I* soon_after(const PatternView<I>& A, int64_t p, int64_t n, bool far) {
  return far && p + n + entries_ahead <= A.nnz ? A.indices + p + entries_ahead : nullptr;
}

// The `lanes` elements of t = u + v [+ w] at u, v, w; w may be null.
template <int lanes, class U, class T>
[[gnu::always_inline]] inline void sum_of(const U* u, const T* v, const T* w, Vec<Sum<T>, lanes>& t) {
  Vec<Sum<T>, lanes> other;
  load<lanes>(u, t);
  load<lanes>(v, other);
  t += other;
  if (!w) return;
  load<lanes>(w, other);
  t += other;
}

template <int n, class S>
[[gnu::always_inline]] inline void leaky_relu(Vec<S, n>& t, S slope) {
  t = t > 0 ? t : t * slope;
}

// The running softmax of the heads of one row: exp(e - top) and its sum, top being the largest score so far.
template <int lanes, class S>
class RunningSoftmax {
 public:
  explicit RunningSoftmax(int64_t n)
      : heads(n), period(period_of<lanes>(n)), top(n), sum(n), scale(n + lanes), lane(period) {}

  void start() {
    std::fill(top.begin(), top.end(), lowest);
    std::fill(sum.begin(), sum.end(), S{0});
  }

  // e: (n, heads) becomes exp(e - top); sums made before this block are to be multiplied by scale.
  [[gnu::always_inline]] void add(S* e, int64_t n) {
    const int64_t size = n * heads;
    for (int64_t k = size; k % lanes != 0; ++k) e[k] = lowest;  // exp(-∞) = 0
    for (int64_t q = 0; q < period; q += lanes) {
      Vec<S, lanes> largest = Vec<S, lanes>{} + lowest, v;
      for (int64_t k = q; k < size; k += period) {
        load<lanes>(e + k, v);
        largest = v > largest ? v : largest;
      }
      fold<lanes>(largest, &lane[q], [](auto& a, const auto& b) { a = b > a ? b : a; });
    }
    raise();
    for (int64_t q = 0; q < period; q += lanes) {
      Vec<S, lanes> shift, v, total{};
      load<lanes>(&lane[q], shift);
      for (int64_t k = q; k < size; k += period) {
        load<lanes>(e + k, v);
        v -= shift;
        exp_lanes<lanes, S>(v);
        total += v;
        store<lanes>(v, e + k);
      }
      fold<lanes>(total, &lane[q], [](auto& a, const auto& b) { a += b; });
    }
    for (int64_t h = 0; h < heads; ++h) {
      S total = 0;
      for (int64_t q = h; q < folded; q += heads) total += lane[q];
      sum[h] = sum[h] * scale[h] + total;
    }
  }

  const int64_t heads, period;
  std::vector<S> top, sum, scale;

 private:
  static constexpr S lowest = -std::numeric_limits<S>::infinity();
  std::vector<S> lane;  // one number for each lane of a period
  const int64_t folded = period == lanes ? heads : period;

  // If a register holds whole entries, puts their lanes together, halves first: one number a head is left.
  template <int n, class F>
  [[gnu::always_inline]] void fold(const Vec<S, n>& v, S* to, const F& f) const {
    if constexpr (n > 1)
      if (folded == heads && heads < n) {
        Vec<S, n / 2> low, high;
        split<n, S>(v, low, high);
        f(low, high);
        return fold<n / 2>(low, to, f);
      }
    store<n>(v, to);
  }

  // Raises top to the largest of each head's lanes; sums made before shrink by scale, and lane is top once more.
  [[gnu::always_inline]] void raise() {
    for (int64_t h = 0; h < heads; ++h) {
      S now = top[h];
      for (int64_t q = h; q < folded; q += heads) now = lane[q] > now ? lane[q] : now;
      const S shift = now == lowest ? S{0} : now;
      scale[h] = top[h] - shift;
      top[h] = now;
      for (int64_t q = h; q < period; q += heads) lane[q] = shift;
    }
    for (int64_t h = 0; h < heads; h += lanes) {
      Vec<S, lanes> v;
      load<lanes>(&scale[h], v);
      exp_lanes<lanes, S>(v);
      store<lanes>(v, &scale[h]);
    }
  }
};

// For `together` heads: sums = scale · sums + Σ_p weights[p] X[indices[p]] in `vectors · lanes` columns. All pointers
// at the first head and its first column; weights: (n, heads), rows of X are (heads, width). soon: null, or rows of X
// to ask for.
template <int lanes, int vectors, int together, class T, class I, class W>
[[gnu::always_inline]] inline void add_rows(const I* indices, int64_t n, const Sum<T>* weights, const T* X,
                                            int64_t heads, const W& width, const I* soon, const Sum<T>* scale,
                                            Sum<T>* sums) {
  Vec<Sum<T>, lanes> sum[together][vectors];
  unrolled<together, vectors>([&]<int h, int k> {
    load<lanes>(sums + h * width + k * lanes, sum[h][k]);
    if (scale) sum[h][k] *= scale[h];
  });
  for (int64_t p = 0; p < n; ++p) {
    const T* row = X + indices[p] * heads * width;
    if (soon) prefetch(X + soon[p] * heads * width, lanes * vectors * together);
    unrolled<together, vectors>([&]<int h, int k> {
      Vec<Sum<T>, lanes> x;
      load<lanes>(row + h * width + k * lanes, x);
      sum[h][k] += weights[p * heads + h] * x;
    });
  }
  unrolled<together, vectors>([&]<int h, int k> { store<lanes>(sum[h][k], sums + h * width + k * lanes); });
}

// Rows begin … end - 1 of Z and lse. scores(i, p, n, e) writes the scores of the entries p … p + n - 1 of row i:
// e[k · heads + h] for entry p + k, and, if X is `far`, asks for the first halves of rows to come. X: (cols, heads,
// width); Z: (rows, heads, width); lse: (rows, heads).
template <int bytes, class T, class I, class W, class Scores>
[[gnu::always_inline]] inline void attend_rows(const PatternView<I>& A, int64_t begin, int64_t end, int64_t heads,
                                               const W& width, const T* X, bool far, const Dropout& dropout,
                                               const Scores& scores, T* Z, Sum<T>* lse) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t columns = heads * width;
  std::vector<S> e(block_size<lanes>(heads)), m(e), sums(columns);
  RunningSoftmax<lanes, S> softmax(heads);
  for (int64_t i = begin; i < end; ++i) {
    std::fill(sums.begin(), sums.end(), S{0});
    softmax.start();
    const int64_t stop = A.indptr[i + 1];
    for (int64_t p = A.indptr[i]; p < stop; p += edge_block) {
      const int64_t n = std::min(edge_block, stop - p);
      scores(i, p, n, e.data());
      softmax.add(e.data(), n);
      if (dropout.any()) {
        entry_factors<lanes>(dropout, p, n, heads, m.data());
        for (int64_t k = 0; k < n * heads; ++k) e[k] *= m[k];
      }
      for_each_tile<lanes>(heads, width, [&]<int l, int vectors, int together>(int64_t h, int64_t c) GOSSAMER_INLINED {
        const int64_t at = h * width + c;
        const I* soon = at + l * vectors * together > columns / 2 ? soon_after(A, p, n, far) : nullptr;
        add_rows<l, vectors, together>(A.indices + p, n, &e[h], X + at, heads, width, soon, &softmax.scale[h],
                                       &sums[at]);
      });
    }
    const bool empty = stop == A.indptr[i];
    for (int64_t h = 0; h < heads; ++h) {
      const S per_sum = empty ? S{0} : 1 / softmax.sum[h];
      lse[i * heads + h] = empty ? S{0} : softmax.top[h] + std::log(softmax.sum[h]);
      for_each_lanes<lanes>(width, [&]<int l>(int64_t c) {
        Vec<S, l> z;
        load<l>(&sums[h * width + c], z);
        z *= per_sum;
        store<l>(z, Z + i * columns + h * width + c);
      });
    }
  }
}

}  // namespace gossamer::kernels
