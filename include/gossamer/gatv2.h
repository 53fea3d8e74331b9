// SPDX-License-Identifier: BSD-3-Clause
// Graph attention, second kind (GATv2), fused: per head, over the entries (i, j) of a pattern, row i = the edges that
// point at i,
//
//   t = x_dst[i] + x_src[j] [+ x_edge[p]],   e = att · leaky_relu(t),   s = row softmax of e
//   Z[i] = Σ_j m s[i, j] x_src[j]            m: dropout, or 1
//
// and backward, with G the gradient of Z, slope(t) = 1 where t > 0 and `slope` else:
//
//   de = s (m G[i]·x_src[j] - G[i]·Z[i])       since Σ_j s m G[i]·x_src[j] = G[i]·Z[i]
//   dt = de att slope(t),   d x_dst[i] = Σ_j dt,   d x_src[j] = Σ_i dt + m s G[i],   d x_edge = dt
//   d att = Σ_ij de leaky_relu(t)              in row ranges that do not depend on the number of threads
//
// O(nnz · heads · width) time; t is made anew wherever it is needed, never stored. The forward keeps Z and lse only,
// the backward needs 2 · nnz · heads numbers of scratch. A column may appear in a row more than once (parallel edges).
#pragma once
#include "online_softmax.h"

namespace gossamer::kernels {

// x_src: (cols, heads, width), x_dst: (rows, heads, width), att: (heads, width), x_edge: (nnz, heads, width) or null.
template <class T, class I>
struct Gatv2 {
  PatternView<I> A;
  int64_t heads = 1, width = 1;
  const T *x_src = nullptr, *x_dst = nullptr, *att = nullptr, *x_edge = nullptr;
  Sum<T> slope = 0;
  Dropout dropout;

  int64_t columns() const { return heads * width; }
  bool far() const { return A.cols * columns() * static_cast<int64_t>(sizeof(T)) > near_bytes; }
};

// att · leaky_relu(u + v [+ w]) of one head.
template <int lanes, class T>
[[gnu::always_inline]] inline Sum<T> gatv2_score(const T* u, const T* v, const T* w, const T* att, Sum<T> slope,
                                                 int64_t width) {
  using S = Sum<T>;
  return sum_columns<lanes, S>(width, [=]<int l>(int64_t c, Vec<S, l>& sum) {
    Vec<S, l> t, a;
    sum_of<l>(u + c, v + c, w ? w + c : w, t);
    leaky_relu<l, S>(t, slope);
    load<l>(att + c, a);
    sum += a * t;
  });
}

// e[h · edge_block + k] for the entries p + k of row i, k < n.
template <int lanes, class T, class I>
[[gnu::always_inline]] inline void gatv2_scores(const Gatv2<T, I>& in, int64_t i, int64_t p, int64_t n, bool far,
                                                Sum<T>* e) {
  const int64_t width = in.width, columns = in.columns();
  const T* v = in.x_dst + i * columns;
  for (int64_t k = 0; k < n; ++k) {
    if (far) prefetch_row(in.A, p + k, in.x_src, columns);
    const T* u = in.x_src + in.A.indices[p + k] * columns;
    const T* w = in.x_edge ? in.x_edge + (p + k) * columns : nullptr;
    for (int64_t h = 0; h < in.heads; ++h) {
      const int64_t c = h * width;
      e[h * edge_block + k] = gatv2_score<lanes>(u + c, v + c, w ? w + c : w, in.att + c, in.slope, width);
    }
  }
}

// Z: (rows, heads, width), lse: (rows, heads).
template <Host E, class T, class I>
void gatv2(const E& exec, const Gatv2<T, I>& in, T* Z, Sum<T>* lse) {
  const bool far = in.far();
  for_each_row_range(exec, in.A, 2 * in.columns(), [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      const auto scores = [&](int64_t i, int64_t p, int64_t n, Sum<T>* e) {
        gatv2_scores<bytes / sizeof(Sum<T>)>(in, i, p, n, far, e);
      };
      attend_rows<bytes>(in.A, begin, end, in.heads, in.width, in.x_src, in.dropout, scores, Z, lse);
    });
  });
}

// For `vectors · lanes` columns of one head of a block: slopes += Σ_p de slope(t), d_att += Σ_p de leaky_relu(t) and,
// unless null, d_edge[p] = de att slope(t). All pointers at their first column, entries `columns` apart.
template <int lanes, int vectors, class T, class I>
[[gnu::always_inline]] inline void gatv2_backward_tile(const I* indices, int64_t n, int64_t columns, const T* x_src,
                                                       const T* x_dst, const T* x_edge, const T* att, Sum<T> slope,
                                                       const Sum<T>* de, Sum<T>* slopes, Sum<T>* d_att, T* d_edge) {
  using S = Sum<T>;
  Vec<S, lanes> sloped[vectors], relued[vectors], t, a, one = Vec<S, lanes>{} + 1, low = Vec<S, lanes>{} + slope;
  for (int k = 0; k < vectors; ++k) {
    load<lanes>(slopes + k * lanes, sloped[k]);
    load<lanes>(d_att + k * lanes, relued[k]);
  }
  for (int64_t p = 0; p < n; ++p)
    for (int k = 0; k < vectors; ++k) {
      const int64_t c = k * lanes;
      sum_of<lanes>(x_src + indices[p] * columns + c, x_dst + c, x_edge ? x_edge + p * columns + c : nullptr, t);
      Vec<S, lanes> times = t > 0 ? one : low;
      times *= de[p];
      sloped[k] += times;
      relued[k] += times * t;
      if (!d_edge) continue;
      load<lanes>(att + c, a);
      a *= times;
      store<lanes>(a, d_edge + p * columns + c);
    }
  for (int k = 0; k < vectors; ++k) {
    store<lanes>(sloped[k], slopes + k * lanes);
    store<lanes>(relued[k], d_att + k * lanes);
  }
}

// Rows begin … end - 1: scratch[p] = {m s, de} as (nnz, 2, heads), d x_dst and, unless null, d x_edge; adds to d_att.
template <int bytes, class T, class I>
[[gnu::always_inline]] inline void gatv2_backward_rows(const Gatv2<T, I>& in, int64_t begin, int64_t end, const T* G,
                                                       const T* Z, const Sum<T>* lse, Sum<T>* scratch, T* d_dst,
                                                       T* d_edge, Sum<T>* d_att) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t heads = in.heads, width = in.width, columns = in.columns();
  const bool far = in.far();
  std::vector<S> e(heads * edge_block), dots(heads * edge_block), GZ(heads), slopes(columns);
  for (int64_t i = begin; i < end; ++i) {
    const T *g = G + i * columns, *z = Z + i * columns;
    for (int64_t h = 0; h < heads; ++h) GZ[h] = dot_columns<lanes>(g + h * width, z + h * width, width);
    std::fill(slopes.begin(), slopes.end(), S{0});
    const int64_t stop = in.A.indptr[i + 1];
    for (int64_t p = in.A.indptr[i]; p < stop; p += edge_block) {
      const int64_t n = std::min(edge_block, stop - p);
      const I* indices = in.A.indices + p;
      gatv2_scores<lanes>(in, i, p, n, far, e.data());
      for (int64_t k = 0; k < n; ++k)
        for (int64_t h = 0; h < heads; ++h)
          dots[h * edge_block + k] =
              dot_columns<lanes>(g + h * width, in.x_src + indices[k] * columns + h * width, width);
      for (int64_t h = 0; h < heads; ++h) {
        S* de = dots.data() + h * edge_block;
        soften_backward<lanes>(e.data() + h * edge_block, de, n, lse[i * heads + h], GZ[h], in.dropout, p * heads + h,
                               heads);
        for_each_tile<lanes>(width, [&]<int l, int vectors>(int64_t tile) {
          const int64_t c = h * width + tile;
          gatv2_backward_tile<l, vectors>(indices, n, columns, in.x_src + c, in.x_dst + i * columns + c,
                                          in.x_edge ? in.x_edge + p * columns + c : nullptr, in.att + c, in.slope, de,
                                          slopes.data() + c, d_att + c, d_edge ? d_edge + p * columns + c : nullptr);
        });
      }
      store_block(n, heads, e.data(), dots.data(), scratch + 2 * p * heads);
    }
    for (int64_t c = 0; c < columns; ++c)
      d_dst[i * columns + c] = static_cast<T>(slopes[c] * static_cast<S>(in.att[c]));
  }
}

// For `vectors · lanes` columns of one head of a block of a row of the transpose: sums += Σ_i m s G[i] and
// slopes += Σ_i de slope(t). All pointers at their first column; weights: {m s, de} as (2, edge_block).
template <int lanes, int vectors, class T, class I>
[[gnu::always_inline]] inline void gatv2_transposed_tile(const I* indices, const I* perm, int64_t n, int64_t columns,
                                                         const T* G, const T* x_src, const T* x_dst, const T* x_edge,
                                                         Sum<T> slope, const Sum<T>* weights, const Sum<T>* de,
                                                         Sum<T>* sums, Sum<T>* slopes) {
  using S = Sum<T>;
  Vec<S, lanes> sum[vectors], sloped[vectors], t, g, one = Vec<S, lanes>{} + 1, low = Vec<S, lanes>{} + slope;
  for (int k = 0; k < vectors; ++k) {
    load<lanes>(sums + k * lanes, sum[k]);
    load<lanes>(slopes + k * lanes, sloped[k]);
  }
  for (int64_t q = 0; q < n; ++q)
    for (int k = 0; k < vectors; ++k) {
      const int64_t c = k * lanes;
      load<lanes>(G + indices[q] * columns + c, g);
      sum[k] += weights[q] * g;
      sum_of<lanes>(x_src + c, x_dst + indices[q] * columns + c, x_edge ? x_edge + perm[q] * columns + c : nullptr, t);
      const Vec<S, lanes> times = t > 0 ? one : low;
      sloped[k] += de[q] * times;
    }
  for (int k = 0; k < vectors; ++k) {
    store<lanes>(sum[k], sums + k * lanes);
    store<lanes>(sloped[k], slopes + k * lanes);
  }
}

// Rows begin … end - 1 of the transpose: d x_src, from the scratch.
template <int bytes, class T, class I>
[[gnu::always_inline]] inline void gatv2_backward_cols(const Gatv2<T, I>& in, const PatternView<I>& At, const I* perm,
                                                       int64_t begin, int64_t end, const T* G, const Sum<T>* scratch,
                                                       T* d_src) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t heads = in.heads, width = in.width, columns = in.columns();
  const bool far = At.cols * columns * static_cast<int64_t>(sizeof(T)) > near_bytes;
  std::vector<S> weights(heads * edge_block), de(heads * edge_block), sums(columns), slopes(columns);
  for (int64_t j = begin; j < end; ++j) {
    std::fill(sums.begin(), sums.end(), S{0});
    std::fill(slopes.begin(), slopes.end(), S{0});
    const int64_t stop = At.indptr[j + 1];
    for (int64_t q = At.indptr[j]; q < stop; q += edge_block) {
      const int64_t n = std::min(edge_block, stop - q);
      for (int64_t k = 0; k < n; ++k) {
        if (far) {
          prefetch_row(At, q + k, G, columns);
          prefetch_row(At, q + k, in.x_dst, columns);
          __builtin_prefetch(scratch + 2 * perm[std::min(q + k + edges_ahead, At.nnz - 1)] * heads);
        }
        const S* entry = scratch + 2 * perm[q + k] * heads;
        for (int64_t h = 0; h < heads; ++h) {
          weights[h * edge_block + k] = entry[h];
          de[h * edge_block + k] = entry[heads + h];
        }
      }
      for (int64_t h = 0; h < heads; ++h)
        for_each_tile<lanes>(width, [&]<int l, int vectors>(int64_t tile) {
          const int64_t c = h * width + tile;
          gatv2_transposed_tile<l, vectors>(At.indices + q, perm + q, n, columns, G + c, in.x_src + j * columns + c,
                                            in.x_dst + c, in.x_edge ? in.x_edge + c : nullptr, in.slope,
                                            weights.data() + h * edge_block, de.data() + h * edge_block,
                                            sums.data() + c, slopes.data() + c);
        });
    }
    for (int64_t c = 0; c < columns; ++c)
      d_src[j * columns + c] = static_cast<T>(sums[c] + slopes[c] * static_cast<S>(in.att[c]));
  }
}

// The gradients, each of the shape of its input. At, perm: the transpose of in.A; scratch: (nnz, 2, heads).
template <class T>
struct Gatv2Gradients {
  T *x_src = nullptr, *x_dst = nullptr, *att = nullptr, *x_edge = nullptr;
};

template <Host E, class T, class I>
void gatv2_backward(const E& exec, const Gatv2<T, I>& in, const PatternView<I>& At, const I* perm, const T* G,
                    const T* Z, const Sum<T>* lse, Sum<T>* scratch, const Gatv2Gradients<T>& d) {
  const int64_t columns = in.columns(), parts = fixed_parts(in.A);
  std::vector<Sum<T>> d_att(parts * columns);
  for_each_part(exec, in.A, parts, [&](int64_t part, int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      gatv2_backward_rows<bytes>(in, begin, end, G, Z, lse, scratch, d.x_dst, d.x_edge, d_att.data() + part * columns);
    });
  });
  for (int64_t c = 0; c < columns; ++c) {
    Sum<T> sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += d_att[part * columns + c];
    d.att[c] = static_cast<T>(sum);
  }
  for_each_row_range(exec, At, 4 * columns, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> { gatv2_backward_cols<bytes>(in, At, perm, begin, end, G, scratch, d.x_src); });
  });
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/gatv2.cu. d att is added up in so many row ranges,
// then over these; scratch: (nnz, heads, 2) numbers and behind them (parts, heads, width).
inline int64_t gatv2_cuda_parts(int64_t rows) {
  return std::min<int64_t>(rows, 1024);
}
template <class T, class I>
[[gnu::weak]] void gatv2(Cuda, const Gatv2<T, I>& in, T* Z, Sum<T>* lse);
template <class T, class I>
[[gnu::weak]] void gatv2_backward(Cuda, const Gatv2<T, I>& in, const PatternView<I>& At, const I* perm, const T* G,
                                  const T* Z, const Sum<T>* lse, Sum<T>* scratch, const Gatv2Gradients<T>& d);

}  // namespace gossamer::kernels
