// SPDX-License-Identifier: BSD-3-Clause
// The gradients of GATv2 (gatv2.h), with G the gradient of Z, slope(t) = 1 where t > 0 and `slope` else:
//
//   de = s (m G[i]·x_src[j] - G[i]·Z[i])       since Σ_j s m G[i]·x_src[j] = G[i]·Z[i]
//   dt = de att slope(t),   d x_dst[i] = Σ_j dt,   d x_src[j] = Σ_i dt + m s G[i],   d x_edge = dt
//   d att = Σ_ij de leaky_relu(t)              in row ranges that do not depend on the number of threads
//
// t is made anew wherever it is needed, never stored: 2 · nnz · heads numbers of scratch, O(nnz · heads · width) time.
#pragma once
#include <gossamer/kernels/gatv2.h>

namespace gossamer::kernels {

// For the `size` numbers of a block of one row, with s = exp(e - lse): weights = m s and de = s (m GX - GZ), where GX =
// G·x_src. lse and GZ are one number a head, repeated for a period of lanes.
template <int lanes, class S>
[[gnu::always_inline]] inline void gatv2_entry_gradients(int64_t size, int64_t period, const S* lse, const S* GZ,
                                                         const S* m, const S* e, const S* GX, S* weights, S* de) {
  for (int64_t q = 0; q < period; q += lanes)
    for (int64_t k = q; k < size; k += period) {
      Vec<S, lanes> s, gradient, away, gz, keep;
      load<lanes>(e + k, s);
      load<lanes>(GX + k, gradient);
      load<lanes>(lse + q, away);
      load<lanes>(GZ + q, gz);
      load<lanes>(m + k, keep);
      s -= away;
      exp_lanes<lanes, S>(s);
      gradient = s * (keep * gradient - gz);
      s *= keep;
      store<lanes>(s, weights + k);
      store<lanes>(gradient, de + k);
    }
}

// For `together` heads and `vectors · lanes` of their columns: slopes += Σ_p de slope(t), d_att += Σ_p de leaky_relu(t)
// and, unless null, d_edge[p] = de att slope(t). All pointers at the first head and its first column; de: (n, heads).
// soon: null, or rows of x_src to ask for.
template <int lanes, int vectors, int together, class T, class I, class W>
[[gnu::always_inline]] inline void gatv2_backward_tile(const Gatv2<T, I>& in, const W& width, const I* indices,
                                                       const I* soon, int64_t n, const T* x_src, const Sum<T>* x_dst,
                                                       const T* x_edge, const Sum<T>* att, const Sum<T>* de,
                                                       Sum<T>* slopes, Sum<T>* d_att, T* d_edge) {
  using S = Sum<T>;
  const int64_t columns = in.heads * width;
  const Vec<S, lanes> one = Vec<S, lanes>{} + 1, low = Vec<S, lanes>{} + in.slope;
  Vec<S, lanes> slope_sums[together][vectors], att_sums[together][vectors];
  unrolled<together, vectors>([&]<int h, int k> {
    load<lanes>(slopes + h * width + k * lanes, slope_sums[h][k]);
    load<lanes>(d_att + h * width + k * lanes, att_sums[h][k]);
  });
  for (int64_t p = 0; p < n; ++p) {
    if (soon) prefetch(x_src + soon[p] * columns, lanes * vectors * together);
    unrolled<together, vectors>([&]<int h, int k> {
      const int64_t c = h * width + k * lanes;
      Vec<S, lanes> t, a;
      sum_of<lanes>(x_dst + c, x_src + indices[p] * columns + c, x_edge ? x_edge + p * columns + c : x_edge, t);
      Vec<S, lanes> times = t > 0 ? one : low;
      times *= de[p * in.heads + h];
      slope_sums[h][k] += times;
      att_sums[h][k] += times * t;
      if (!d_edge) return;
      load<lanes>(att + c, a);
      a *= times;
      store<lanes>(a, d_edge + p * columns + c);
    });
  }
  unrolled<together, vectors>([&]<int h, int k> {
    store<lanes>(slope_sums[h][k], slopes + h * width + k * lanes);
    store<lanes>(att_sums[h][k], d_att + h * width + k * lanes);
  });
}

// to = slopes att [+ sums], each of n columns; sums may be null.
template <int lanes, class T>
[[gnu::always_inline]] inline void add_products(const Sum<T>* slopes, const Sum<T>* att, const Sum<T>* sums, int64_t n,
                                                T* to) {
  for_each_lanes<lanes>(n, [&]<int l>(int64_t c) {
    Vec<Sum<T>, l> a, v;
    load<l>(slopes + c, v);
    load<l>(att + c, a);
    v *= a;
    if (sums) {
      load<l>(sums + c, a);
      v += a;
    }
    store<l>(v, to + c);
  });
}

// Rows begin … end - 1: scratch[p] = {m s, de} as (nnz, 2, heads), d x_dst and, unless null, d x_edge; adds to d_att.
template <int bytes, class T, class I, class W>
[[gnu::always_inline]] inline void gatv2_backward_rows(const Gatv2<T, I>& in, const W& width, int64_t begin,
                                                       int64_t end, const T* G, const T* Z, const Sum<T>* lse,
                                                       Sum<T>* scratch, T* d_dst, T* d_edge, Sum<T>* d_att) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t heads = in.heads, columns = heads * width, period = period_of<lanes>(heads);
  const bool far = in.far();
  std::vector<S> e(block_size<lanes>(heads)), GX(e), m(e.size(), S{1}), weights(e), de(e);
  std::vector<S> GZ(heads), GZs(period), lses(period), slopes(columns);
  WideRow<lanes, T> dst_row(columns), g_row(columns), att_row(columns);
  const S* att = att_row.of(in.att);
  for (int64_t i = begin; i < end; ++i) {
    const S *x_dst = dst_row.of(in.x_dst + i * columns), *g = g_row.of(G + i * columns);
    dot_heads<lanes>(g, Z + i * columns, heads, width, GZ.data());
    repeat(GZ.data(), heads, period, GZs.data());
    repeat(lse + i * heads, heads, period, lses.data());
    std::fill(slopes.begin(), slopes.end(), S{0});
    const int64_t stop = in.A.indptr[i + 1];
    for (int64_t p = in.A.indptr[i]; p < stop; p += edge_block) {
      const int64_t n = std::min(edge_block, stop - p);
      const I* indices = in.A.indices + p;
      gatv2_scores<lanes>(in, width, x_dst, att, p, n, far, e.data());
      for (int64_t k = 0; k < n; ++k)
        dot_heads<lanes>(g, in.x_src + indices[k] * columns, heads, width, &GX[k * heads]);
      if (in.dropout.any()) entry_factors<lanes>(in.dropout, p, n, heads, m.data());
      gatv2_entry_gradients<lanes>(n * heads, period, lses.data(), GZs.data(), m.data(), e.data(), GX.data(),
                                   weights.data(), de.data());
      for_each_tile<lanes>(
          heads, width, [&]<int l, int vectors, int together>(int64_t h, int64_t tile) GOSSAMER_INLINED {
            const int64_t c = h * width + tile;
            const I* soon = c + l * vectors * together > columns / 2 ? soon_after(in.A, p, n, far) : nullptr;
            gatv2_backward_tile<l, vectors, together>(
                in, width, indices, soon, n, in.x_src + c, x_dst + c, in.x_edge ? in.x_edge + p * columns + c : nullptr,
                att + c, &de[h], &slopes[c], d_att + c, d_edge ? d_edge + p * columns + c : nullptr);
          });
      for (int64_t k = 0; k < n; ++k) {
        S* entry = scratch + 2 * (p + k) * heads;
        copy_lanes<lanes>(&weights[k * heads], heads, entry);
        copy_lanes<lanes>(&de[k * heads], heads, entry + heads);
      }
    }
    add_products<lanes>(slopes.data(), att, nullptr, columns, d_dst + i * columns);
  }
}

// For `together` heads and `vectors · lanes` of their columns of a block of a row of the transpose: sums += Σ_i m s
// G[i] and slopes += Σ_i de slope(t). All pointers at the first head and its first column; entries: {m s, de} as (n, 2,
// heads).
template <int lanes, int vectors, int together, class T, class I, class W>
[[gnu::always_inline]] inline void gatv2_transposed_tile(const Gatv2<T, I>& in, const W& width, const I* indices,
                                                         const I* soon, const I* perm, int64_t n, const T* G,
                                                         const Sum<T>* x_src, const T* x_dst, const T* x_edge,
                                                         const Sum<T>* entries, Sum<T>* sums, Sum<T>* slopes) {
  using S = Sum<T>;
  const int64_t heads = in.heads, columns = heads * width;
  const Vec<S, lanes> one = Vec<S, lanes>{} + 1, low = Vec<S, lanes>{} + in.slope;
  Vec<S, lanes> sum[together][vectors], slope_sums[together][vectors];
  unrolled<together, vectors>([&]<int h, int k> {
    load<lanes>(sums + h * width + k * lanes, sum[h][k]);
    load<lanes>(slopes + h * width + k * lanes, slope_sums[h][k]);
  });
  for (int64_t q = 0; q < n; ++q) {
    if (soon) {
      prefetch(G + soon[q] * columns, lanes * vectors * together);
      prefetch(x_dst + soon[q] * columns, lanes * vectors * together);
    }
    unrolled<together, vectors>([&]<int h, int k> {
      const int64_t c = h * width + k * lanes;
      Vec<S, lanes> t, g;
      load<lanes>(G + indices[q] * columns + c, g);
      sum[h][k] += entries[2 * q * heads + h] * g;
      sum_of<lanes>(x_src + c, x_dst + indices[q] * columns + c, x_edge ? x_edge + perm[q] * columns + c : x_edge, t);
      const Vec<S, lanes> slope = t > 0 ? one : low;
      slope_sums[h][k] += entries[(2 * q + 1) * heads + h] * slope;
    });
  }
  unrolled<together, vectors>([&]<int h, int k> {
    store<lanes>(sum[h][k], sums + h * width + k * lanes);
    store<lanes>(slope_sums[h][k], slopes + h * width + k * lanes);
  });
}

// Rows begin … end - 1 of the transpose: d x_src, from the scratch.
template <int bytes, class T, class I, class W>
[[gnu::always_inline]] inline void gatv2_backward_cols(const Gatv2<T, I>& in, const W& width, const PatternView<I>& At,
                                                       const I* perm, int64_t begin, int64_t end, const T* G,
                                                       const Sum<T>* scratch, T* d_src) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t heads = in.heads, columns = heads * width;
  const bool far = is_far<T>(At.cols * columns);
  std::vector<S> entries(2 * heads * edge_block), sums(columns), slopes(columns);
  WideRow<lanes, T> src_row(columns), att_row(columns);
  const S* att = att_row.of(in.att);
  for (int64_t j = begin; j < end; ++j) {
    const S* x_src = src_row.of(in.x_src + j * columns);
    std::fill(sums.begin(), sums.end(), S{0});
    std::fill(slopes.begin(), slopes.end(), S{0});
    const int64_t stop = At.indptr[j + 1];
    for (int64_t q = At.indptr[j]; q < stop; q += edge_block) {
      const int64_t n = std::min(edge_block, stop - q);
      for (int64_t k = 0; k < n; ++k) {
        const int64_t soon = perm[std::min(q + k + entries_ahead, At.nnz - 1)], p = perm[q + k];
        if (far) __builtin_prefetch(scratch + 2 * soon * heads);
        copy_lanes<lanes>(scratch + 2 * p * heads, 2 * heads, &entries[2 * k * heads]);
      }
      for_each_tile<lanes>(heads, width,
                           [&]<int l, int vectors, int together>(int64_t h, int64_t tile) GOSSAMER_INLINED {
                             const int64_t c = h * width + tile;
                             gatv2_transposed_tile<l, vectors, together>(
                                 in, width, At.indices + q, soon_after(At, q, n, far), perm + q, n, G + c, x_src + c,
                                 in.x_dst + c, in.x_edge ? in.x_edge + c : nullptr, &entries[h], &sums[c], &slopes[c]);
                           });
    }
    add_products<lanes>(slopes.data(), att, sums.data(), columns, d_src + j * columns);
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
      with_width<bytes, T, I>(in.width, [&](const auto& width) {
        gatv2_backward_rows<bytes>(in, width, begin, end, G, Z, lse, scratch, d.x_dst, d.x_edge,
                                   d_att.data() + part * columns);
      });
    });
  });
  for (int64_t c = 0; c < columns; ++c) {
    Sum<T> sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += d_att[part * columns + c];
    d.att[c] = static_cast<T>(sum);
  }
  for_each_row_range(exec, At, 4 * columns, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      with_width<bytes, T, I>(in.width, [&](const auto& width) {
        gatv2_backward_cols<bytes>(in, width, At, perm, begin, end, G, scratch, d.x_src);
      });
    });
  });
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/gatv2.cu. d att is added up in the pieces of long
// rows and in so many ranges of short ones, then over these. scratch: (nnz, heads, 2) numbers, behind them (places +
// parts, heads, width) for d att and (places, heads, width) for what pieces add to the other gradients.
inline int64_t gatv2_cuda_parts(int64_t rows) {
  return std::min<int64_t>(rows, 1024);
}
inline int64_t gatv2_cuda_scratch(int64_t rows, int64_t nnz, int64_t heads, int64_t width) {
  return (2 * nnz + (2 * piece_places(nnz) + gatv2_cuda_parts(rows)) * width) * heads;
}
template <class T, class I>
[[gnu::weak]] void gatv2_backward(Cuda, const Gatv2<T, I>& in, const PatternView<I>& At, const I* perm, const T* G,
                                  const T* Z, const Sum<T>* lse, Sum<T>* scratch, const Gatv2Gradients<T>& d);

// Under Pool, compiled once: src/cpu/gatv2_backward.cpp.
#define GOSSAMER_GATV2_BACKWARD(T, I, ...)                                                                             \
  __VA_ARGS__ template void gatv2_backward(const Pool&, const Gatv2<T, I>&, const PatternView<I>&, const I*, const T*, \
                                           const T*, const Sum<T>*, Sum<T>*, const Gatv2Gradients<T>&);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_GATV2_BACKWARD, extern)
#endif

}  // namespace gossamer::kernels
