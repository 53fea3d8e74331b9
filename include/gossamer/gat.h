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
// O(nnz · heads · width) time; the forward keeps Z and lse only, the backward needs (nnz + 3 rows) · heads numbers of
// scratch. A column may appear in a row more than once (parallel edges): nothing here minds.
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

// The scores of entry p of row i, each `edge_block` after the one of the head before.
template <int lanes, class T, class I>
[[gnu::always_inline]] inline void gat_scores(const Gat<T, I>& in, int64_t i, int64_t p, Sum<T>* e) {
  using S = Sum<T>;
  const T *dst = in.alpha_dst + i * in.heads, *src = in.alpha_src + in.A.indices[p] * in.heads;
  for_each_tile<lanes>(in.heads, [&]<int l, int vectors>(int64_t first) {
    for (int64_t h = first; h < first + l * vectors; h += l) {
      Vec<S, l> t;
      S scores[l];
      sum_of<l>(dst + h, src + h, in.alpha_edge ? in.alpha_edge + p * in.heads + h : nullptr, t);
      leaky_relu<l, S>(t, in.slope);
      store<l>(t, scores);
      for (int k = 0; k < l; ++k) e[(h + k) * edge_block] = scores[k];
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
          gat_scores<bytes / sizeof(S)>(in, i, p + k, e + k);
        }
      };
      attend_rows<bytes>(in.A, begin, end, in.heads, in.width, in.X, in.dropout, scores, Z, lse);
    });
  });
}

// What an entry wants of its row, for rows begin … end - 1: ends[i] = {alpha_dst, lse, G·Z} as (rows, 3, heads).
template <int bytes, class T, class I>
[[gnu::always_inline]] inline void gat_backward_ends(const Gat<T, I>& in, int64_t begin, int64_t end, const T* G,
                                                     const T* Z, const Sum<T>* lse, Sum<T>* ends) {
  constexpr int lanes = bytes / sizeof(Sum<T>);
  const int64_t heads = in.heads, width = in.width;
  for (int64_t i = begin; i < end; ++i)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t at = (i * heads + h) * width;
      ends[3 * i * heads + h] = static_cast<Sum<T>>(in.alpha_dst[i * heads + h]);
      ends[(3 * i + 1) * heads + h] = lse[i * heads + h];
      ends[(3 * i + 2) * heads + h] = dot_columns<lanes>(G + at, Z + at, width);
    }
}

// A block of entries of one source, all numbers as (heads, edge_block).
template <class S>
struct GatBlock {
  explicit GatBlock(int64_t heads)
      : e(heads * edge_block), slopes(e.size()), lse(e.size()), GZ(e.size()), m(e.size(), S{1}), dots(e.size()) {}
  std::vector<S> e, slopes, lse, GZ, m, dots;
};

// Entry k of the block: target i, source j, number p in the pattern.
template <int lanes, class T, class I>
[[gnu::always_inline]] inline void gat_entry(const Gat<T, I>& in, int64_t i, int64_t j, int64_t p, int64_t k,
                                             const T* G, const Sum<T>* ends, GatBlock<Sum<T>>& block) {
  using S = Sum<T>;
  const int64_t heads = in.heads, width = in.width;
  const S* end = ends + 3 * i * heads;
  const T *g = G + i * heads * width, *x = in.X + j * heads * width, *src = in.alpha_src + j * heads;
  for_each_tile<lanes>(heads, [&]<int l, int vectors>(int64_t first) {
    for (int64_t h = first; h < first + l * vectors; h += l) {
      Vec<S, l> t, slope = Vec<S, l>{} + in.slope, one = Vec<S, l>{} + 1;
      sum_of<l>(end + h, src + h, in.alpha_edge ? in.alpha_edge + p * heads + h : nullptr, t);
      slope = t > 0 ? one : slope;
      t *= slope;
      S ts[l], slopes[l];
      store<l>(t, ts);
      store<l>(slope, slopes);
      for (int u = 0; u < l; ++u) {
        const int64_t at = (h + u) * edge_block + k;
        block.e[at] = ts[u];
        block.slopes[at] = slopes[u];
        block.lse[at] = end[heads + h + u];
        block.GZ[at] = end[2 * heads + h + u];
      }
    }
  });
  for (int64_t h = 0; h < heads; ++h)
    block.dots[h * edge_block + k] = dot_columns<lanes>(g + h * width, x + h * width, width);
  if (in.dropout.any())
    for (int64_t h = 0; h < heads; ++h) block.m[h * edge_block + k] = in.dropout.template factor<S>(p * heads + h);
}

// For n entries of one head: e becomes m s with s = exp(e - lse), and dots = G·X becomes dt = slope s (m dots - GZ).
template <int lanes, class S>
[[gnu::always_inline]] inline void gat_soften(GatBlock<S>& block, int64_t head, int64_t n) {
  for (int64_t k = head * edge_block; k < head * edge_block + n; k += lanes) {
    Vec<S, lanes> s, lse, dt, GZ, m, slope;
    load<lanes>(&block.e[k], s);
    load<lanes>(&block.lse[k], lse);
    load<lanes>(&block.dots[k], dt);
    load<lanes>(&block.GZ[k], GZ);
    load<lanes>(&block.m[k], m);
    load<lanes>(&block.slopes[k], slope);
    s -= lse;
    exp_lanes<lanes, S>(s);
    dt = slope * s * (m * dt - GZ);
    s *= m;
    store<lanes>(s, &block.e[k]);
    store<lanes>(dt, &block.dots[k]);
  }
}

// Rows begin … end - 1 of the transpose: dX[j] = Σ_i m s G[i], d alpha_src[j] = Σ_i dt, and dts[p] = dt as (nnz,
// heads).
template <int bytes, class T, class I>
[[gnu::always_inline]] inline void gat_backward_cols(const Gat<T, I>& in, const PatternView<I>& At, const I* perm,
                                                     int64_t begin, int64_t end, const T* G, const Sum<T>* ends,
                                                     Sum<T>* dts, T* dX, T* d_alpha_src) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t heads = in.heads, width = in.width, columns = heads * width;
  const bool far = At.cols * columns * static_cast<int64_t>(sizeof(T)) > near_bytes;
  GatBlock<S> block(heads);
  std::vector<S> sums(columns), d_src(heads);
  for (int64_t j = begin; j < end; ++j) {
    std::fill(sums.begin(), sums.end(), S{0});
    std::fill(d_src.begin(), d_src.end(), S{0});
    const int64_t stop = At.indptr[j + 1];
    for (int64_t q = At.indptr[j]; q < stop; q += edge_block) {
      const int64_t n = std::min(edge_block, stop - q);
      for (int64_t k = 0; k < n; ++k) {
        if (far) {
          prefetch_row(At, q + k, G, columns);
          prefetch_row(At, q + k, ends, 3 * heads);
          __builtin_prefetch(dts + perm[std::min(q + k + edges_ahead, At.nnz - 1)] * heads, /*to write=*/1);
        }
        gat_entry<lanes>(in, At.indices[q + k], j, perm[q + k], k, G, ends, block);
      }
      for (int64_t h = 0; h < heads; ++h) {
        gat_soften<lanes>(block, h, n);
        for_each_tile<lanes>(width, [&]<int l, int vectors>(int64_t c) {
          add_rows<l, vectors>(At.indices + q, n, &block.e[h * edge_block], G + h * width + c, columns, S{1},
                               sums.data() + h * width + c);
        });
      }
      for (int64_t k = 0; k < n; ++k)
        for (int64_t h = 0; h < heads; ++h) {
          const S dt = block.dots[h * edge_block + k];
          d_src[h] += dt;
          dts[perm[q + k] * heads + h] = dt;
        }
    }
    for (int64_t c = 0; c < columns; ++c) dX[j * columns + c] = static_cast<T>(sums[c]);
    for (int64_t h = 0; h < heads; ++h) d_alpha_src[j * heads + h] = static_cast<T>(d_src[h]);
  }
}

// The gradients, each of the shape of its input. At, perm: the transpose of in.A; scratch: (nnz + 3 rows, heads).
template <class T>
struct GatGradients {
  T *X = nullptr, *alpha_src = nullptr, *alpha_dst = nullptr, *alpha_edge = nullptr;
};

// Rows of G are all that is gathered, source by source: G[i]·X[j] and m s G[i] want the same ones. Rows of X, target by
// target, would be gathered once more.
template <Host E, class T, class I>
void gat_backward(const E& exec, const Gat<T, I>& in, const PatternView<I>& At, const I* perm, const T* G, const T* Z,
                  const Sum<T>* lse, Sum<T>* scratch, const GatGradients<T>& d) {
  using S = Sum<T>;
  const int64_t heads = in.heads, cost = heads * (in.width + 16);
  S *dts = scratch, *ends = scratch + in.A.nnz * heads;
  for_each_row_range(exec, in.A, heads, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> { gat_backward_ends<bytes>(in, begin, end, G, Z, lse, ends); });
  });
  for_each_row_range(exec, At, cost, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> { gat_backward_cols<bytes>(in, At, perm, begin, end, G, ends, dts, d.X, d.alpha_src); });
  });
  for_each_row_range(exec, in.A, heads, [&](int64_t begin, int64_t end) {
    std::vector<S> sums(heads);
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), S{0});
      for (int64_t p = in.A.indptr[i]; p < in.A.indptr[i + 1]; ++p)
        for (int64_t h = 0; h < heads; ++h) {
          sums[h] += dts[p * heads + h];
          if (d.alpha_edge) d.alpha_edge[p * heads + h] = static_cast<T>(dts[p * heads + h]);
        }
      for (int64_t h = 0; h < heads; ++h) d.alpha_dst[i * heads + h] = static_cast<T>(sums[h]);
    }
  });
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/gat.cu. scratch: (nnz, heads, 2).
template <class T, class I>
[[gnu::weak]] void gat(Cuda, const Gat<T, I>& in, T* Z, Sum<T>* lse);
template <class T, class I>
[[gnu::weak]] void gat_backward(Cuda, const Gat<T, I>& in, const PatternView<I>& At, const I* perm, const T* G,
                                const T* Z, const Sum<T>* lse, Sum<T>* scratch, const GatGradients<T>& d);

}  // namespace gossamer::kernels
