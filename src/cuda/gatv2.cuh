// SPDX-License-Identifier: BSD-3-Clause
// Graph attention of the second kind on a CUDA device. The contract and the equations are those of gossamer/gatv2.h.
//
// Backward, the first pass over the rows leaves {m s, de} of each entry and head in the scratch; the second, and the
// one over the transpose, add them up, making t anew. d att is added up in a fixed number of row ranges and in the
// pieces of long rows, then over these. Each element has one writer and one order of addition: no atomics, the same
// bits every time. What pieces add to a row goes to `partial`, for a second pass (pieces.cuh).
#pragma once
#include <gossamer/kernels/gatv2_backward.h>
#include "online_softmax.cuh"

namespace gossamer::kernels {

// t = x_dst[i] + x_src[j] [+ x_edge[p]] of one head, as a function of the column.
template <class T>
struct Gatv2Term {
  const T *dst, *src, *edge;  // at the head's first column; edge may be null

  template <class I>
  __device__ Gatv2Term(const Gatv2<T, I>& in, int64_t i, int64_t j, int64_t p, int64_t h)
      : dst(in.x_dst + (i * in.heads + h) * in.width),
        src(in.x_src + (j * in.heads + h) * in.width),
        edge(in.x_edge ? in.x_edge + (p * in.heads + h) * in.width : nullptr) {}

  __device__ Sum<T> operator()(int64_t c) const {
    const Sum<T> t = static_cast<Sum<T>>(dst[c]) + static_cast<Sum<T>>(src[c]);
    return edge ? t + static_cast<Sum<T>>(edge[c]) : t;
  }
};

// e = att · leaky_relu(t): the warp makes them together, lane k holds the one of entry p + k.
template <int lanes, class T, class I>
__device__ inline Sum<T> gatv2_lane_score(const Gatv2<T, I>& in, int64_t i, int64_t p, int count, int64_t h) {
  using S = Sum<T>;
  const T* att = in.att + h * in.width;
  const S slope = in.slope;
  return device::sums_of_columns<lanes, S>(p, count, in.width, [&](int64_t q) {
    const Gatv2Term<T> term(in, i, in.A.indices[q], q, h);
    return [=](int64_t c) {
      const S t = term(c);
      return static_cast<S>(att[c]) * device::slope_at(t, slope) * t;
    };
  });
}

template <int lanes, int columns, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    gatv2_tiles(Gatv2<T, I> in, T* __restrict__ Z, Sum<T>* __restrict__ lse, Sum<T>* __restrict__ partial) {
  const auto score = [&](int64_t i, int64_t p, int count, int64_t h) {
    return gatv2_lane_score<lanes>(in, i, p, count, h);
  };
  device::attend_tiles<lanes, columns>(in, in.x_src, score, Z, lse, partial);
}

// A warp owns a run of one head: {m s, de} of its entries.
template <int lanes, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    gatv2_entry_gradients(Gatv2<T, I> in, const T* __restrict__ G, const T* __restrict__ Z,
                          const Sum<T>* __restrict__ lse, Sum<T>* __restrict__ scratch) {
  for (int64_t job = device::warp(); job < device::runs_of(in.A) * in.heads; job += device::warps()) {
    const device::Run run = device::run_at(in.A, job / in.heads);
    if (!run.any()) continue;
    const int64_t h = job % in.heads;
    const auto scores = [&](int64_t p, int count) { return gatv2_lane_score<lanes>(in, run.row, p, count, h); };
    device::soften<lanes>(in, in.x_src, run, h, G, Z, lse, scores, [&](int64_t p, Sum<T> ms, Sum<T> de) {
      scratch[2 * (p * in.heads + h)] = ms;
      scratch[2 * (p * in.heads + h) + 1] = de;
    });
  }
}

// A run of row i for one head and the columns left + k · lanes of this lane: d x_dst[i] = att Σ_p de slope(t), or what
// a piece adds to that, d x_edge, and relued += Σ_p de leaky_relu(t), still apart for each group.
template <int lanes, int columns, class T, class I>
__device__ inline void gatv2_run(const Gatv2<T, I>& in, const device::Run& run, int64_t h, int64_t left,
                                 const Sum<T>* __restrict__ scratch, const Gatv2Gradients<T>& d,
                                 Sum<T> (&relued)[columns], Sum<T>* __restrict__ partial) {
  using S = Sum<T>;
  const int64_t width = in.width;
  const T* att = in.att + h * width;
  S sloped[columns] = {};
  for (int64_t p = run.begin + device::lane() / lanes; p < run.end; p += device::warp_lanes / lanes) {
    const S de = scratch[2 * (p * in.heads + h) + 1];
    const Gatv2Term<T> term(in, run.row, in.A.indices[p], p, h);
    for (int k = 0; k < columns; ++k) {
      const int64_t c = left + k * lanes;
      if (c >= width) continue;
      const S t = term(c), step = de * device::slope_at(t, in.slope);
      sloped[k] += step;
      relued[k] += step * t;
      if (d.x_edge) d.x_edge[(p * in.heads + h) * width + c] = static_cast<T>(step * static_cast<S>(att[c]));
    }
  }
  for (int k = 0; k < columns; ++k) {
    const int64_t c = left + k * lanes;
    sloped[k] = device::sum_lanes<device::warp_lanes, lanes>(sloped[k]);
    if (device::lane() >= lanes || c >= width) continue;
    const S sum = sloped[k] * static_cast<S>(att[c]);
    if (run.whole())
      d.x_dst[(run.row * in.heads + h) * width + c] = static_cast<T>(sum);
    else
      partial[(run.place * in.heads + h) * width + c] = sum;
  }
}

// A warp owns a tile of columns of head h, for a piece or for the short rows in one of `parts` row ranges of equal
// work: d x_dst, d x_edge, and d att of the piece or range, d_att: (places + parts, heads, width).
template <int lanes, int columns, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    gatv2_row_gradients(Gatv2<T, I> in, int64_t parts, const Sum<T>* __restrict__ scratch, Gatv2Gradients<T> d,
                        Sum<T>* __restrict__ d_att, Sum<T>* __restrict__ partial) {
  constexpr int64_t tile = lanes * columns;
  const int64_t tiles = device::tiles_of(in.width, tile), places = piece_places(in.A.nnz);
  for (int64_t job = device::warp(); job < (places + parts) * in.heads * tiles; job += device::warps()) {
    const int64_t part = job / tiles / in.heads, h = job / tiles % in.heads;
    const int64_t left = job % tiles * tile + device::lane() % lanes;
    const bool piece = part < places;
    const RowRange rows = piece ? RowRange{0, 1} : row_range(in.A, part - places, parts);
    Sum<T> relued[columns] = {};
    for (int64_t i = rows.begin; i < rows.end; ++i)
      if (const device::Run run = piece ? device::piece_at(in.A, part) : device::short_row(in.A, i); run.any())
        gatv2_run<lanes, columns>(in, run, h, left, scratch, d, relued, partial);
    for (int k = 0; k < columns; ++k) {
      const int64_t c = left + k * lanes;
      relued[k] = device::sum_lanes<device::warp_lanes, lanes>(relued[k]);
      if (device::lane() < lanes && c < in.width) d_att[(part * in.heads + h) * in.width + c] = relued[k];
    }
  }
}

// A warp owns a column: the sum of pieces and parts, lane k adding the parts k, k + 32, …, lanes in a shuffle tree.
template <class T>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    gatv2_sum_parts(int64_t columns, int64_t parts, const Sum<T>* __restrict__ d_att, T* __restrict__ att) {
  for (int64_t c = device::warp(); c < columns; c += device::warps()) {
    Sum<T> sum = 0;
    for (int64_t part = device::lane(); part < parts; part += device::warp_lanes) sum += d_att[part * columns + c];
    sum = device::sum_lanes<device::warp_lanes, 1>(sum);
    if (device::lane() == 0) att[c] = static_cast<T>(sum);
  }
}

// A warp owns a tile of columns of d x_src[j, h] = Σ_i m s G[i, h] + att Σ_i de slope(t), i over row j of the
// transpose, or over a piece of it.
template <int lanes, int columns, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    gatv2_col_gradients(Gatv2<T, I> in, PatternView<I> At, const I* __restrict__ perm, const T* __restrict__ G,
                        const Sum<T>* __restrict__ scratch, T* __restrict__ d_src, Sum<T>* __restrict__ partial) {
  using S = Sum<T>;
  constexpr int64_t tile = lanes * columns;
  const int64_t tiles = device::tiles_of(in.width, tile), width = in.width;
  for (int64_t job = device::warp(); job < device::runs_of(At) * in.heads * tiles; job += device::warps()) {
    const device::Run run = device::run_at(At, job / tiles / in.heads);
    if (!run.any()) continue;
    const int64_t j = run.row, h = job / tiles % in.heads;
    const int64_t left = job % tiles * tile + device::lane() % lanes;
    S sum[columns] = {}, sloped[columns] = {};
    for (int64_t q = run.begin + device::lane() / lanes; q < run.end; q += device::warp_lanes / lanes) {
      const int64_t i = At.indices[q], p = perm[q];
      const S ms = scratch[2 * (p * in.heads + h)], de = scratch[2 * (p * in.heads + h) + 1];
      const Gatv2Term<T> term(in, i, j, p, h);
      const T* g = G + (i * in.heads + h) * width;
      for (int k = 0; k < columns; ++k) {
        const int64_t c = left + k * lanes;
        if (c >= width) continue;
        sum[k] += ms * static_cast<S>(g[c]);
        sloped[k] += de * device::slope_at(term(c), in.slope);
      }
    }
    for (int k = 0; k < columns; ++k) {
      const int64_t c = left + k * lanes;
      sum[k] = device::sum_lanes<device::warp_lanes, lanes>(sum[k]);
      sloped[k] = device::sum_lanes<device::warp_lanes, lanes>(sloped[k]);
      if (device::lane() >= lanes || c >= width) continue;
      const S both = sum[k] + sloped[k] * static_cast<S>(in.att[h * width + c]);
      if (run.whole())
        d_src[(j * in.heads + h) * width + c] = static_cast<T>(both);
      else
        partial[(run.place * in.heads + h) * width + c] = both;
    }
  }
}

}  // namespace gossamer::kernels
