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

namespace gossamer::kernels {

// Entries of a row at a time: 32 rows of 128 floats stay in the nearest cache. Numbers of a block are (n, heads).
constexpr int64_t edge_block = 32;
constexpr int64_t edges_ahead = 12;  // entries to look ahead, as in spmm

// Numbers of a block, and room to fill its last register.
template <int lanes>
inline int64_t block_size(int64_t heads) {
  return edge_block * heads + lanes;
}

// Reads the row of X of the entry `edges_ahead` after p into the cache.
template <class T, class I>
[[gnu::always_inline]] inline void prefetch_row(const PatternView<I>& A, int64_t p, const T* X, int64_t width) {
  constexpr int64_t line = 64 / sizeof(T);
  const T* next = X + A.indices[std::min(p + edges_ahead, A.nnz - 1)] * width;
  for (int64_t c = 0; c < width; c += line) __builtin_prefetch(next + c);
}

// The columns of the entries `edges_ahead` after p … p + n - 1, or null if there are none or none is worth a prefetch.
template <class I>
[[gnu::always_inline]] inline const I* soon_after(const PatternView<I>& A, int64_t p, int64_t n, bool far) {
  return far && p + n + edges_ahead <= A.nnz ? A.indices + p + edges_ahead : nullptr;
}

// Reads `columns` elements at X into the cache.
template <int columns, class T>
[[gnu::always_inline]] inline void prefetch(const T* X) {
  constexpr int line = 64 / sizeof(T);
  for (int c = 0; c < columns; c += line) __builtin_prefetch(X + c);
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

// m[k] = dropout.factor(first + k) for k < n, a register of them at a time; m has room for a whole last one.
template <int lanes, class S>
[[gnu::always_inline]] inline void drop(const Dropout& dropout, int64_t first, int64_t n, S* m) {
  constexpr int l = lanes * sizeof(S) / sizeof(uint64_t);
  Vec<uint64_t, l> steps, z;
  for (int k = 0; k < l; ++k) steps[k] = Dropout::step * k;
  for (int64_t k = 0; k < n; k += l) {
    z = steps + (dropout.key + Dropout::step * static_cast<uint64_t>(first + k + 1));
    mix(z);
    z >>= 11;
    const auto keeps =
        __builtin_convertvector(z >= dropout.dropped, Vec<std::conditional_t<sizeof(S) == 4, int32_t, int64_t>, l>);
    const Vec<S, l> kept = Vec<S, l>{} + static_cast<S>(dropout.kept), none{};
    store<l>(keeps ? kept : none, m + k);
  }
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
// at the first head and its first column; weights: (n, heads), rows of X are (heads, width).
template <int lanes, int vectors, int together, class T, class I, class W>
[[gnu::always_inline]] inline void add_rows(const I* indices, int64_t n, const Sum<T>* weights, const T* X,
                                            int64_t heads, const W& width, const Sum<T>* scale, Sum<T>* sums) {
  Vec<Sum<T>, lanes> sum[together][vectors];
  unrolled<together, vectors>([&]<int h, int k> {
    load<lanes>(sums + h * width + k * lanes, sum[h][k]);
    if (scale) sum[h][k] *= scale[h];
  });
  for (int64_t p = 0; p < n; ++p) {
    const T* row = X + indices[p] * heads * width;
    unrolled<together, vectors>([&]<int h, int k> {
      Vec<Sum<T>, lanes> x;
      load<lanes>(row + h * width + k * lanes, x);
      sum[h][k] += weights[p * heads + h] * x;
    });
  }
  unrolled<together, vectors>([&]<int h, int k> { store<lanes>(sum[h][k], sums + h * width + k * lanes); });
}

// Rows begin … end - 1 of Z and lse. scores(i, p, n, e) writes the scores of the entries p … p + n - 1 of row i:
// e[k · heads + h] for entry p + k. X: (cols, heads, width); Z: (rows, heads, width); lse: (rows, heads).
template <int bytes, class T, class I, class W, class Scores>
[[gnu::always_inline]] inline void attend_rows(const PatternView<I>& A, int64_t begin, int64_t end, int64_t heads,
                                               const W& width, const T* X, const Dropout& dropout, const Scores& scores,
                                               T* Z, Sum<T>* lse) {
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
        drop<lanes>(dropout, p * heads, n * heads, m.data());
        for (int64_t k = 0; k < n * heads; ++k) e[k] *= m[k];
      }
      for_each_tile<lanes>(heads, width, [&]<int l, int vectors, int together>(int64_t h, int64_t c) GOSSAMER_INLINED {
        const int64_t at = h * width + c;
        add_rows<l, vectors, together>(A.indices + p, n, &e[h], X + at, heads, width, &softmax.scale[h], &sums[at]);
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
