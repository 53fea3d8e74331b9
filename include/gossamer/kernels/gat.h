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
#include <gossamer/kernels/online_softmax.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// X: (cols, heads, width), alpha_src: (cols, heads), alpha_dst: (rows, heads), alpha_edge: (nnz, heads) or null.
template <class T, class I>
struct Gat {
  PatternView<I> A;
  int64_t heads = 1, width = 1;
  const T *X = nullptr, *alpha_src = nullptr, *alpha_dst = nullptr, *alpha_edge = nullptr;
  Sum<T> slope = 0;
  Dropout dropout;

  bool far() const { return is_far<T>(A.cols * heads * width); }
};

// The definition of Z as loops. Tests compare the tuned kernel with it; unlike that one it overflows for large scores.
namespace plain {
template <class T, class I>
void gat(const Gat<T, I>& in, T* Z) {
  for (int64_t i = 0; i < in.A.rows; ++i)
    for (int64_t h = 0; h < in.heads; ++h) {
      const auto exp_score = [&](int64_t p) {
        const Sum<T> t = in.alpha_dst[i * in.heads + h] + in.alpha_src[in.A.indices[p] * in.heads + h] +
                         (in.alpha_edge ? in.alpha_edge[p * in.heads + h] : T(0));
        return std::exp(t > 0 ? t : in.slope * t);
      };
      Sum<T> sum = 0;
      for (int64_t p = in.A.indptr[i]; p < in.A.indptr[i + 1]; ++p) sum += exp_score(p);
      std::vector<Sum<T>> z(in.width);
      for (int64_t p = in.A.indptr[i]; p < in.A.indptr[i + 1]; ++p) {
        const Sum<T> weight =
            exp_score(p) / sum * in.dropout.template factor<Sum<T>>(in.dropout.first(p, in.heads) + h);
        for (int64_t c = 0; c < in.width; ++c) z[c] += weight * in.X[(in.A.indices[p] * in.heads + h) * in.width + c];
      }
      for (int64_t c = 0; c < in.width; ++c) Z[(i * in.heads + h) * in.width + c] = static_cast<T>(z[c]);
    }
}
}  // namespace plain

// The scores of entry p of row i.
template <int lanes, class T, class I>
[[gnu::always_inline]] inline void gat_scores(const Gat<T, I>& in, int64_t i, int64_t p, Sum<T>* e) {
  const T *dst = in.alpha_dst + i * in.heads, *src = in.alpha_src + in.A.indices[p] * in.heads;
  const T* edge = in.alpha_edge ? in.alpha_edge + p * in.heads : nullptr;
  for_each_lanes<lanes>(in.heads, [&]<int l>(int64_t h) {
    Vec<Sum<T>, l> t;
    sum_of<l>(dst + h, src + h, edge ? edge + h : edge, t);
    leaky_relu<l, Sum<T>>(t, in.slope);
    store<l>(t, e + h);
  });
}

// Reads what an entry a little after p will want into the cache.
template <class T, class I>
[[gnu::always_inline]] inline void gat_prefetch(const Gat<T, I>& in, int64_t p) {
  prefetch_first_half(in.A, p, in.X, in.heads * in.width);
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
          gat_scores<bytes / sizeof(S)>(in, i, p + k, e + k * in.heads);
        }
      };
      with_width<bytes, T, I>(in.width, [&](const auto& width) {
        attend_rows<bytes>(in.A, begin, end, in.heads, width, in.X, far, in.dropout, scores, Z, lse);
      });
    });
  });
}

// What an entry wants of its row, for rows begin … end - 1: ends[i] = {alpha_dst, lse, G·Z} as (rows, 3, heads).
template <int bytes, class T, class I>
[[gnu::always_inline]] inline void gat_backward_ends(const Gat<T, I>& in, int64_t begin, int64_t end, const T* G,
                                                     const T* Z, const Sum<T>* lse, Sum<T>* ends) {
  constexpr int lanes = bytes / sizeof(Sum<T>);
  const int64_t heads = in.heads, columns = heads * in.width;
  for (int64_t i = begin; i < end; ++i) {
    Sum<T>* to = ends + 3 * i * heads;
    copy_lanes<lanes>(in.alpha_dst + i * heads, heads, to);
    copy_lanes<lanes>(lse + i * heads, heads, to + heads);
    dot_heads<lanes>(G + i * columns, Z + i * columns, heads, in.width, to + 2 * heads);
  }
}

// A block of entries of one source. Each array is (n, heads) numbers, and all lie in one piece of memory.
template <int lanes, class S>
struct GatBlock {
  const int64_t size;
  std::vector<S> numbers;
  S *const e, *const slopes, *const GZ, *const GX, *const m;  // of an entry: e - lse, slope(t), G·Z, G·X, dropout
  S *const weights, *const dt;                                // m s; dt

  explicit GatBlock(int64_t heads)
      : size(block_size<lanes>(heads)),
        numbers(7 * size),
        e(numbers.data()),
        slopes(e + size),
        GZ(slopes + size),
        GX(GZ + size),
        m(GX + size),
        weights(m + size),
        dt(weights + size) {
    std::fill(m, m + size, S{1});
  }
};

// Entry p of the pattern, from source j to target i, at `at` in the block: e = leaky_relu(t) - lse, slope(t), G·Z, G·X.
template <int lanes, class T, class I, class W>
[[gnu::always_inline]] inline void gat_entry(const Gat<T, I>& in, const W& width, int64_t i, int64_t j, int64_t p,
                                             int64_t at, const T* G, const Sum<T>* ends,
                                             GatBlock<lanes, Sum<T>>& block) {
  using S = Sum<T>;
  const int64_t heads = in.heads, columns = heads * width;
  const S *end = ends + 3 * i * heads, *lse = end + heads;
  const T* src = in.alpha_src + j * heads;
  const T* edge = in.alpha_edge ? in.alpha_edge + p * heads : nullptr;
  for_each_lanes<lanes>(heads, [&]<int l>(int64_t h) {
    Vec<S, l> t, away, slope = Vec<S, l>{} + in.slope, one = Vec<S, l>{} + 1;
    sum_of<l>(end + h, src + h, edge ? edge + h : edge, t);
    load<l>(lse + h, away);
    slope = t > 0 ? one : slope;
    t = t * slope - away;
    store<l>(t, &block.e[at + h]);
    store<l>(slope, &block.slopes[at + h]);
  });
  copy_lanes<lanes>(end + 2 * heads, heads, &block.GZ[at]);
  dot_heads<lanes>(G + i * columns, in.X + j * columns, heads, width, &block.GX[at]);
  if (in.dropout.any()) entry_factors<lanes>(in.dropout, p, 1, heads, &block.m[at]);
}

// For the first `size` numbers of a block, with s = exp(e): weights = m s and dt = slope s (m GX - GZ).
template <int lanes, class S>
[[gnu::always_inline]] inline void gat_entry_gradients(GatBlock<lanes, S>& block, int64_t size) {
  for (int64_t k = 0; k < size; k += lanes) {
    Vec<S, lanes> s, dt, GZ, m, slope;
    load<lanes>(&block.e[k], s);
    load<lanes>(&block.GX[k], dt);
    load<lanes>(&block.GZ[k], GZ);
    load<lanes>(&block.m[k], m);
    load<lanes>(&block.slopes[k], slope);
    exp_lanes<lanes, S>(s);
    dt = slope * s * (m * dt - GZ);
    s *= m;
    store<lanes>(s, &block.weights[k]);
    store<lanes>(dt, &block.dt[k]);
  }
}

// Rows begin … end - 1 of the transpose: dX[j] = Σ_i m s G[i], d alpha_src[j] = Σ_i dt, and dt[p], as (nnz,
// heads).
template <int bytes, class T, class I, class W>
[[gnu::always_inline]] inline void gat_backward_cols(const Gat<T, I>& in, const W& width, const PatternView<I>& At,
                                                     const I* perm, int64_t begin, int64_t end, const T* G,
                                                     const Sum<T>* ends, Sum<T>* dt, T* dX, T* d_alpha_src) {
  using S = Sum<T>;
  constexpr int lanes = bytes / sizeof(S);
  const int64_t heads = in.heads, columns = heads * width;
  const bool far = is_far<T>(At.cols * columns);
  GatBlock<lanes, S> block(heads);
  std::vector<S> sums(columns), d_src(heads);
  for (int64_t j = begin; j < end; ++j) {
    std::fill(sums.begin(), sums.end(), S{0});
    std::fill(d_src.begin(), d_src.end(), S{0});
    const int64_t stop = At.indptr[j + 1];
    for (int64_t q = At.indptr[j]; q < stop; q += edge_block) {
      const int64_t n = std::min(edge_block, stop - q);
      for (int64_t k = 0; k < n; ++k) {
        if (far) {
          prefetch_first_half(At, q + k, G, columns);
          prefetch_row(At, q + k, ends, 3 * heads);
          __builtin_prefetch(dt + perm[std::min(q + k + entries_ahead, At.nnz - 1)] * heads, /*to write=*/1);
        }
        gat_entry<lanes>(in, width, At.indices[q + k], j, perm[q + k], k * heads, G, ends, block);
      }
      gat_entry_gradients<lanes>(block, n * heads);
      for_each_tile<lanes>(heads, width, [&]<int l, int vectors, int together>(int64_t h, int64_t c) GOSSAMER_INLINED {
        const int64_t at = h * width + c;
        const I* soon = at + l * vectors * together > columns / 2 ? soon_after(At, q, n, far) : nullptr;
        add_rows<l, vectors, together>(At.indices + q, n, &block.weights[h], G + at, heads, width, soon, nullptr,
                                       &sums[at]);
      });
      for (int64_t k = 0; k < n; ++k) {
        copy_lanes<lanes>(&block.dt[k * heads], heads, dt + perm[q + k] * heads);
        for (int64_t h = 0; h < heads; ++h) d_src[h] += block.dt[k * heads + h];
      }
    }
    copy_lanes<lanes>(sums.data(), columns, dX + j * columns);
    copy_lanes<lanes>(d_src.data(), heads, d_alpha_src + j * heads);
  }
}

// Rows begin … end - 1: d alpha_dst[i] = Σ_j dt and, unless null, d alpha_edge = dt.
template <int bytes, class T, class I>
[[gnu::always_inline]] inline void gat_backward_rows(const Gat<T, I>& in, int64_t begin, int64_t end, const Sum<T>* dt,
                                                     T* d_alpha_dst, T* d_alpha_edge) {
  constexpr int lanes = bytes / sizeof(Sum<T>);
  for (int64_t i = begin; i < end; ++i)
    for_each_lanes<lanes>(in.heads, [&]<int l>(int64_t h) {
      Vec<Sum<T>, l> sum{}, v;
      for (int64_t p = in.A.indptr[i]; p < in.A.indptr[i + 1]; ++p) {
        load<l>(dt + p * in.heads + h, v);
        sum += v;
        if (d_alpha_edge) store<l>(v, d_alpha_edge + p * in.heads + h);
      }
      store<l>(sum, d_alpha_dst + i * in.heads + h);
    });
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
  S *dt = scratch, *ends = scratch + in.A.nnz * heads;
  for_each_row_range(exec, in.A, heads, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> { gat_backward_ends<bytes>(in, begin, end, G, Z, lse, ends); });
  });
  for_each_row_range(exec, At, cost, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      with_width<bytes, T, I>(in.width, [&](const auto& width) {
        gat_backward_cols<bytes>(in, width, At, perm, begin, end, G, ends, dt, d.X, d.alpha_src);
      });
    });
  });
  for_each_row_range(exec, in.A, heads, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> { gat_backward_rows<bytes>(in, begin, end, dt, d.alpha_dst, d.alpha_edge); });
  });
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/gat.cu. The scratch of the forward holds
// attention_cuda_scratch numbers; that of the backward (nnz, heads, 2), and behind them what pieces of long rows add.
inline int64_t gat_cuda_scratch(int64_t nnz, int64_t heads, int64_t width) {
  return (2 * nnz + piece_places(nnz) * (width + 1)) * heads;
}
template <class T, class I>
[[gnu::weak]] void gat(Cuda, const Gat<T, I>& in, T* Z, Sum<T>* lse, Sum<T>* scratch);
template <class T, class I>
[[gnu::weak]] void gat_backward(Cuda, const Gat<T, I>& in, const PatternView<I>& At, const I* perm, const T* G,
                                const T* Z, const Sum<T>* lse, Sum<T>* scratch, const GatGradients<T>& d);

// Under Pool, compiled once: src/cpu/gat.cpp.
#define GOSSAMER_GAT(T, I, ...)                                                                                    \
  __VA_ARGS__ template void gat(const Pool&, const Gat<T, I>&, T*, Sum<T>*);                                       \
  __VA_ARGS__ template void gat_backward(const Pool&, const Gat<T, I>&, const PatternView<I>&, const I*, const T*, \
                                         const T*, const Sum<T>*, Sum<T>*, const GatGradients<T>&);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_GAT, extern)
#endif

}  // namespace gossamer::kernels
