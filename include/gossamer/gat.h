// SPDX-License-Identifier: BSD-3-Clause
// Graph attention (GAT), fused: per head, over the entries (i, j) of a pattern, row i = the edges that point at i,
//
//   t = alpha_dst[i] + alpha_src[j] [+ alpha_edge[p]],   e = leaky_relu(t),   s = row softmax of e
//   Z[i] = Σ_j m s[i, j] X[j]                            m: dropout, or 1
//
// and backward, with G the gradient of Z, slope(t) = 1 for t > 0 and `slope` else:
//
//   de = s (m G[i]·X[j] - G[i]·Z[i])      since Σ_j s m G[i]·X[j] = G[i]·Z[i]
//   dt = slope(t) de,   d alpha_dst[i] = Σ_j dt,   d alpha_src[j] = Σ_i dt,   d alpha_edge = dt,   dX[j] = Σ_i m s G[i]
//
// O(nnz · heads · width) time; the forward keeps Z and lse only, the backward needs 2 · nnz · heads numbers of scratch.
// A column may appear in a row more than once (parallel edges): nothing here minds.
#pragma once
#include "online_softmax.h"

namespace gossamer::kernels {

// X: (cols, heads, width), alpha_src: (cols, heads), alpha_dst: (rows, heads), alpha_edge: (nnz, heads) or null.
template <class T, class I>
struct Gat {
  PatternView<I> A;
  int64_t heads = 1, width = 1;
  const T *X = nullptr, *alpha_src = nullptr, *alpha_dst = nullptr, *alpha_edge = nullptr;
  Sum<T> slope = 0;
  Dropout dropout;

  bool far() const { return A.cols * heads * width * static_cast<int64_t>(sizeof(T)) > near_bytes; }
};

// The scores of entry p of row i and slope(t), each `edge_block` after the one of the head before; slopes may be null.
template <int lanes, class T, class I>
[[gnu::always_inline]] inline void gat_scores(const Gat<T, I>& in, int64_t i, int64_t p, Sum<T>* e, Sum<T>* slopes) {
  using S = Sum<T>;
  const T *dst = in.alpha_dst + i * in.heads, *src = in.alpha_src + in.A.indices[p] * in.heads;
  for_each_tile<lanes>(in.heads, [&]<int l, int vectors>(int64_t first) {
    for (int64_t h = first; h < first + l * vectors; h += l) {
      Vec<S, l> t, other, slope = Vec<S, l>{} + in.slope, one = Vec<S, l>{} + 1;
      S scores[l], sloped[l];
      load<l>(dst + h, t);
      load<l>(src + h, other);
      t += other;
      if (in.alpha_edge) load<l>(in.alpha_edge + p * in.heads + h, other), t += other;
      slope = t > 0 ? one : slope;
      t *= slope;
      store<l>(t, scores);
      store<l>(slope, sloped);
      for (int k = 0; k < l; ++k) e[(h + k) * edge_block] = scores[k];
      if (slopes)
        for (int k = 0; k < l; ++k) slopes[(h + k) * edge_block] = sloped[k];
    }
  });
}

// Reads what an entry a little after p will want into the cache.
template <class T, class I>
[[gnu::always_inline]] inline void gat_prefetch(const Gat<T, I>& in, int64_t p) {
  prefetch_row(in.A, p, in.X, in.heads * in.width);
  prefetch_row(in.A, p, in.alpha_src, in.heads);
}

// Z: (rows, heads, width), lse: (rows, heads).
template <Host E, class T, class I>
void gat(const E& exec, const Gat<T, I>& in, T* Z, Sum<T>* lse) {
  using S = Sum<T>;
  const bool far = in.far();
  for_each_row_range(exec, in.A, in.heads * (in.width + 16), [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      const auto scores = [&](int64_t i, int64_t p, int64_t n, S* e) {
        for (int64_t k = 0; k < n; ++k) {
          if (far) gat_prefetch(in, p + k);
          gat_scores<bytes / sizeof(S)>(in, i, p + k, e + k, static_cast<S*>(nullptr));
        }
      };
      attend_rows<bytes>(in.A, begin, end, in.heads, in.width, in.X, in.dropout, scores, Z, lse);
    });
  });
}

// Rows begin … end - 1: scratch[p] = {m s, dt} as (nnz, 2, heads), d alpha_dst and, unless null, d alpha_edge.
template <int bytes, class T, class I>
[[gnu::always_inline]] inline void gat_backward_rows(const Gat<T, I>& in, int64_t begin, int64_t end, const T* G,
                                                     const T* Z, const Sum<T>* lse, Sum<T>* scratch, T* d_alpha_dst,
                                                     T* d_alpha_edge) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t heads = in.heads, width = in.width, columns = heads * width;
  const bool far = in.far();
  std::vector<S> e(heads * edge_block), dots(heads * edge_block), slopes(heads * edge_block), GZ(heads), sums(heads);
  for (int64_t i = begin; i < end; ++i) {
    const T *g = G + i * columns, *z = Z + i * columns;
    for (int64_t h = 0; h < heads; ++h) GZ[h] = dot_columns<lanes>(g + h * width, z + h * width, width), sums[h] = 0;
    const int64_t stop = in.A.indptr[i + 1];
    for (int64_t p = in.A.indptr[i]; p < stop; p += edge_block) {
      const int64_t n = std::min(edge_block, stop - p);
      for (int64_t k = 0; k < n; ++k) {
        if (far) gat_prefetch(in, p + k);
        gat_scores<lanes>(in, i, p + k, e.data() + k, slopes.data() + k);
        const T* x = in.X + in.A.indices[p + k] * columns;
        for (int64_t h = 0; h < heads; ++h)
          dots[h * edge_block + k] = dot_columns<lanes>(g + h * width, x + h * width, width);
      }
      for (int64_t h = 0; h < heads; ++h) {
        S* dt = dots.data() + h * edge_block;
        soften_backward<lanes>(e.data() + h * edge_block, dt, n, lse[i * heads + h], GZ[h], in.dropout, p * heads + h,
                               heads);
        for (int64_t k = 0; k < n; ++k) sums[h] += dt[k] *= slopes[h * edge_block + k];
        if (d_alpha_edge)
          for (int64_t k = 0; k < n; ++k) d_alpha_edge[(p + k) * heads + h] = static_cast<T>(dt[k]);
      }
      store_block(n, heads, e.data(), dots.data(), scratch + 2 * p * heads);
    }
    for (int64_t h = 0; h < heads; ++h) d_alpha_dst[i * heads + h] = static_cast<T>(sums[h]);
  }
}

// Rows begin … end - 1 of the transpose: dX[j] = Σ_i m s G[i] and d alpha_src[j] = Σ_i dt, from the scratch.
template <int bytes, class T, class I>
[[gnu::always_inline]] inline void gat_backward_cols(const PatternView<I>& At, const I* perm, int64_t begin,
                                                     int64_t end, int64_t heads, int64_t width, const T* G,
                                                     const Sum<T>* scratch, T* dX, T* d_alpha_src) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t columns = heads * width;
  const bool far = At.cols * columns * static_cast<int64_t>(sizeof(T)) > near_bytes;
  std::vector<S> weights(heads * edge_block), sums(columns), d_src(heads);
  for (int64_t j = begin; j < end; ++j) {
    std::fill(sums.begin(), sums.end(), S{0});
    std::fill(d_src.begin(), d_src.end(), S{0});
    const int64_t stop = At.indptr[j + 1];
    for (int64_t q = At.indptr[j]; q < stop; q += edge_block) {
      const int64_t n = std::min(edge_block, stop - q);
      for (int64_t k = 0; k < n; ++k) {
        if (far) {
          prefetch_row(At, q + k, G, columns);
          __builtin_prefetch(scratch + 2 * perm[std::min(q + k + edges_ahead, At.nnz - 1)] * heads);
        }
        const S* entry = scratch + 2 * perm[q + k] * heads;
        for (int64_t h = 0; h < heads; ++h) weights[h * edge_block + k] = entry[h], d_src[h] += entry[heads + h];
      }
      for (int64_t h = 0; h < heads; ++h)
        for_each_tile<lanes>(width, [&]<int l, int vectors>(int64_t c) {
          add_rows<l, vectors>(At.indices + q, n, weights.data() + h * edge_block, G + h * width + c, columns, S{1},
                               sums.data() + h * width + c);
        });
    }
    for (int64_t c = 0; c < columns; ++c) dX[j * columns + c] = static_cast<T>(sums[c]);
    for (int64_t h = 0; h < heads; ++h) d_alpha_src[j * heads + h] = static_cast<T>(d_src[h]);
  }
}

// The gradients, each of the shape of its input. At, perm: the transpose of in.A; scratch: (nnz, 2, heads).
template <class T>
struct GatGradients {
  T *X = nullptr, *alpha_src = nullptr, *alpha_dst = nullptr, *alpha_edge = nullptr;
};

template <Host E, class T, class I>
void gat_backward(const E& exec, const Gat<T, I>& in, const PatternView<I>& At, const I* perm, const T* G, const T* Z,
                  const Sum<T>* lse, Sum<T>* scratch, const GatGradients<T>& d) {
  const int64_t cost = in.heads * (in.width + 16);
  for_each_row_range(exec, in.A, cost, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> { gat_backward_rows<bytes>(in, begin, end, G, Z, lse, scratch, d.alpha_dst, d.alpha_edge); });
  });
  for_each_row_range(exec, At, cost, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      gat_backward_cols<bytes>(At, perm, begin, end, in.heads, in.width, G, scratch, d.X, d.alpha_src);
    });
  });
}

}  // namespace gossamer::kernels
