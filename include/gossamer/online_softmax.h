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

#include "dropout.h"
#include "exec.h"
#include "exp.h"

namespace gossamer::kernels {

// Entries of a row at a time: 32 rows of 128 floats stay in the nearest cache. Numbers of a block are (heads, 32).
constexpr int64_t edge_block = 32;
constexpr int64_t edges_ahead = 12;  // entries to look ahead, as in spmm

// Reads the rows of X of the entry `edges_ahead` after p into the cache.
template <class T, class I>
[[gnu::always_inline]] inline void prefetch_row(const PatternView<I>& A, int64_t p, const T* X, int64_t width) {
  constexpr int64_t line = 64 / sizeof(T);
  const T* next = X + A.indices[std::min(p + edges_ahead, A.nnz - 1)] * width;
  for (int64_t c = 0; c < width; c += line) __builtin_prefetch(next + c);
}

// Calls f<lanes, vectors>(c) for tiles of lanes · vectors columns from column c on, the widest first, until all `width`
// columns are done.
template <int lanes, class F>
[[gnu::always_inline]] inline void for_each_tile(int64_t width, const F& f, int64_t c = 0) {
  for (; c + 4 * lanes <= width; c += 4 * lanes) f.template operator()<lanes, 4>(c);
  for (; c + lanes <= width; c += lanes) f.template operator()<lanes, 1>(c);
  if constexpr (lanes > 1)
    if (c < width) for_each_tile<lanes / 2>(width, f, c);
}

// Σ_c term(c) over `width` columns: term<lanes>(c, sum) adds `lanes` products to the lanes of sum.
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

template <int lanes, class T>
[[gnu::always_inline]] inline Sum<T> dot_columns(const T* a, const T* b, int64_t width) {
  return sum_columns<lanes, Sum<T>>(width, [=]<int l>(int64_t c, Vec<Sum<T>, l>& sum) {
    Vec<Sum<T>, l> u, v;
    load<l>(a + c, u);
    load<l>(b + c, v);
    sum += u * v;
  });
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

// The running softmax of one head of one row: exp(e - top) and its sum, top being the largest score so far.
template <class S>
struct RunningSoftmax {
  static constexpr S lowest = -std::numeric_limits<S>::infinity();
  S top = lowest, sum = 0;

  // e[0 … n) becomes exp(e - top); returns what sums made before this block are to be multiplied by.
  template <int lanes>
  [[gnu::always_inline]] S add(S* e, int64_t n) {
    Vec<S, lanes> v, largest, total{};
    for (int64_t p = n; p % lanes != 0; ++p) e[p] = lowest;  // exp(-∞) = 0
    load<lanes>(e, largest);
    for (int64_t p = lanes; p < n; p += lanes) {
      load<lanes>(e + p, v);
      largest = v > largest ? v : largest;
    }
    const S before = top, now = max_lanes<lanes, S>(largest);
    top = now > top ? now : top;
    const S shift = top == lowest ? S{0} : top;
    for (int64_t p = 0; p < n; p += lanes) {
      load<lanes>(e + p, v);
      v -= shift;
      exp_lanes<lanes, S>(v);
      total += v;
      store<lanes>(v, e + p);
    }
    S scale = before - shift;
    exp_lanes<1, S>(scale);
    sum = sum * scale + sum_lanes<lanes, S>(total);
    return scale;
  }
};

// sums = scale · sums + Σ_p weights[p] X[indices[p]] for `vectors · lanes` columns; X and sums point at the first.
template <int lanes, int vectors, class T, class I>
[[gnu::always_inline]] inline void add_rows(const I* indices, int64_t n, const Sum<T>* weights, const T* X, int64_t ldx,
                                            Sum<T> scale, Sum<T>* sums) {
  Vec<Sum<T>, lanes> sum[vectors], x;
  for (int k = 0; k < vectors; ++k) {
    load<lanes>(sums + k * lanes, sum[k]);
    sum[k] *= scale;
  }
  for (int64_t p = 0; p < n; ++p)
    for (int k = 0; k < vectors; ++k) {
      load<lanes>(X + indices[p] * ldx + k * lanes, x);
      sum[k] += weights[p] * x;
    }
  for (int k = 0; k < vectors; ++k) store<lanes>(sum[k], sums + k * lanes);
}

// Rows begin … end - 1 of Z and lse. scores(i, p, n, e) writes the scores of the entries p … p + n - 1 of row i:
// e[h · edge_block + k] for entry p + k. X: (cols, heads, width); Z: (rows, heads, width); lse: (rows, heads).
template <int bytes, class T, class I, class Scores>
[[gnu::always_inline]] inline void attend_rows(const PatternView<I>& A, int64_t begin, int64_t end, int64_t heads,
                                               int64_t width, const T* X, const Dropout& dropout, const Scores& scores,
                                               T* Z, Sum<T>* lse) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t columns = heads * width;
  std::vector<S> e(heads * edge_block), sums(columns);
  std::vector<RunningSoftmax<S>> softmax(heads);
  for (int64_t i = begin; i < end; ++i) {
    std::fill(sums.begin(), sums.end(), S{0});
    std::fill(softmax.begin(), softmax.end(), RunningSoftmax<S>{});
    const int64_t stop = A.indptr[i + 1];
    for (int64_t p = A.indptr[i]; p < stop; p += edge_block) {
      const int64_t n = std::min(edge_block, stop - p);
      scores(i, p, n, e.data());
      for (int64_t h = 0; h < heads; ++h) {
        S* weights = e.data() + h * edge_block;
        const S scale = softmax[h].template add<lanes>(weights, n);
        if (dropout.any())
          for (int64_t k = 0; k < n; ++k) weights[k] *= dropout.factor<S>((p + k) * heads + h);
        for_each_tile<lanes>(width, [&]<int l, int vectors>(int64_t c) {
          add_rows<l, vectors>(A.indices + p, n, weights, X + h * width + c, columns, scale,
                               sums.data() + h * width + c);
        });
      }
    }
    const bool empty = stop == A.indptr[i];
    for (int64_t h = 0; h < heads; ++h) {
      const S per_sum = empty ? S{0} : 1 / softmax[h].sum;
      lse[i * heads + h] = empty ? S{0} : softmax[h].top + std::log(softmax[h].sum);
      for (int64_t c = 0; c < width; ++c)
        Z[i * columns + h * width + c] = static_cast<T>(sums[h * width + c] * per_sum);
    }
  }
}

// Backward, for one head of a block: e becomes m s with s = exp(e - lse), and dots = G·X becomes de = s (m dots - GZ).
// place, stride: where entry k stands for dropout.
template <int lanes, class S>
[[gnu::always_inline]] inline void soften_backward(S* e, S* dots, int64_t n, S lse, S GZ, const Dropout& dropout,
                                                   int64_t place, int64_t stride) {
  S m[edge_block];
  std::fill(m, m + edge_block, S{1});
  if (dropout.any())
    for (int64_t k = 0; k < n; ++k) m[k] = dropout.factor<S>(place + k * stride);
  for (int64_t k = 0; k < n; k += lanes) {
    Vec<S, lanes> s, P, keep;
    load<lanes>(e + k, s);
    load<lanes>(dots + k, P);
    load<lanes>(m + k, keep);
    s -= lse;
    exp_lanes<lanes, S>(s);
    P = s * (keep * P - GZ);
    s *= keep;
    store<lanes>(s, e + k);
    store<lanes>(P, dots + k);
  }
}

// What the pass over the transpose reads of a block, entry by entry: scratch (n, 2, heads) = {a, b} of (heads,
// edge_block).
template <class S>
[[gnu::always_inline]] inline void store_block(int64_t n, int64_t heads, const S* a, const S* b, S* scratch) {
  for (int64_t k = 0; k < n; ++k)
    for (int64_t h = 0; h < heads; ++h) {
      scratch[2 * k * heads + h] = a[h * edge_block + k];
      scratch[(2 * k + 1) * heads + h] = b[h * edge_block + k];
    }
}

// Row ranges of equal work for a sum over the whole graph: so many that every thread has some, and as many on every
// machine, so that adding the sums of the ranges in order gives the same bits whatever the number of threads.
template <class I>
int64_t fixed_parts(const PatternView<I>& A) {
  constexpr int64_t work = 16384, most = 64;
  return std::clamp<int64_t>((A.nnz + A.rows) / work, 1, most);
}

// f(k, begin, end) for each of `parts` row ranges.
template <Host E, class I, class F>
void for_each_part(const E& exec, const PatternView<I>& A, int64_t parts, const F& f) {
  const int64_t work = A.nnz + A.rows;
  const auto one = [&](int64_t k) {
    const int64_t begin = row_at(A, work * k / parts),
                  end = k + 1 == parts ? A.rows : row_at(A, work * (k + 1) / parts);
    f(k, begin, end);
  };
  if (parts == 1 || exec.threads() == 1)
    for (int64_t k = 0; k < parts; ++k) one(k);
  else
    exec.parallel_for(parts, one);
}

}  // namespace gossamer::kernels
