// SPDX-License-Identifier: BSD-3-Clause
// Graph attention on a CUDA device. The contract and the equations are those of gossamer/gat.h.
//
// Backward, the pass over the rows leaves {m s, dt} of each entry and head in the scratch, and the one over the
// transpose adds them up. Each element has one writer and one order of addition: no atomics, the same bits every time.
// Rows and columns may be long: what their pieces add goes to `partial`, for a second pass (pieces.cuh).
#pragma once
#include <gossamer/kernels/gat.h>
#include "online_softmax.cuh"

namespace gossamer::kernels {

// t = alpha_dst[i] + alpha_src[j] [+ alpha_edge[p]] of one head.
template <class T, class I>
__device__ inline Sum<T> gat_term(const Gat<T, I>& in, int64_t i, int64_t p, int64_t h) {
  using S = Sum<T>;
  const S t =
      static_cast<S>(in.alpha_dst[i * in.heads + h]) + static_cast<S>(in.alpha_src[in.A.indices[p] * in.heads + h]);
  return in.alpha_edge ? t + static_cast<S>(in.alpha_edge[p * in.heads + h]) : t;
}

// e = leaky_relu(t): a lane makes its own.
template <class T, class I>
__device__ inline Sum<T> gat_lane_score(const Gat<T, I>& in, int64_t i, int64_t p, int count, int64_t h) {
  if (device::lane() >= count) return 0;
  const Sum<T> t = gat_term(in, i, p + device::lane(), h);
  return device::slope_at(t, in.slope) * t;
}

template <int lanes, int columns, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    gat_tiles(Gat<T, I> in, T* __restrict__ Z, Sum<T>* __restrict__ lse, Sum<T>* __restrict__ partial) {
  const auto score = [&](int64_t i, int64_t p, int count, int64_t h) { return gat_lane_score(in, i, p, count, h); };
  device::attend_tiles<lanes, columns>(in, in.X, score, Z, lse, partial);
}

// A warp owns a run of row i for head h: {m s, dt} and d alpha_edge of its entries; d alpha_dst[i], or of a piece what
// it adds to that, partial: (places, heads).
template <int lanes, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    gat_row_gradients(Gat<T, I> in, const T* __restrict__ G, const T* __restrict__ Z, const Sum<T>* __restrict__ lse,
                      Sum<T>* __restrict__ scratch, GatGradients<T> d, Sum<T>* __restrict__ partial) {
  for (int64_t job = device::warp(); job < device::runs_of(in.A) * in.heads; job += device::warps()) {
    const device::Run run = device::run_at(in.A, job / in.heads);
    if (!run.any()) continue;
    const int64_t h = job % in.heads;
    Sum<T> sum = 0;
    const auto scores = [&](int64_t p, int count) { return gat_lane_score(in, run.row, p, count, h); };
    device::soften<lanes>(in, in.X, run, h, G, Z, lse, scores, [&](int64_t p, Sum<T> ms, Sum<T> de) {
      const int64_t at = p * in.heads + h;
      const Sum<T> dt = device::slope_at(gat_term(in, run.row, p, h), in.slope) * de;
      scratch[2 * at] = ms;
      scratch[2 * at + 1] = dt;
      if (d.alpha_edge) d.alpha_edge[at] = static_cast<T>(dt);
      sum += dt;
    });
    sum = device::sum_lanes<device::warp_lanes, 1>(sum);
    if (device::lane() > 0) continue;
    if (run.whole())
      d.alpha_dst[run.row * in.heads + h] = static_cast<T>(sum);
    else
      partial[run.place * in.heads + h] = sum;
  }
}

// A warp owns a tile of columns of dX[j, h] = Σ_i m s G[i, h]; with the first tile, d alpha_src[j, h] = Σ_i dt. Groups
// take every (32 / lanes)-th entry of row j of the transpose; their sums meet in a shuffle tree. What a piece adds goes
// to a row of partial: first its dX, (heads, width), then its d alpha_src, (heads).
template <int lanes, int columns, class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::attention_blocks<T>)
    gat_col_gradients(Gat<T, I> in, PatternView<I> At, const I* __restrict__ perm, const T* __restrict__ G,
                      const Sum<T>* __restrict__ scratch, GatGradients<T> d, Sum<T>* __restrict__ partial) {
  using S = Sum<T>;
  constexpr int64_t tile = lanes * columns;
  const int64_t tiles = device::tiles_of(in.width, tile), heads = in.heads, width = in.width;
  for (int64_t job = device::warp(); job < device::runs_of(At) * heads * tiles; job += device::warps()) {
    const device::Run run = device::run_at(At, job / tiles / heads);
    if (!run.any()) continue;
    const int64_t h = job / tiles % heads, left = job % tiles * tile + device::lane() % lanes;
    S sum[columns] = {}, d_src = 0;
    for (int64_t q = run.begin + device::lane() / lanes; q < run.end; q += device::warp_lanes / lanes) {
      const int64_t at = perm[q] * heads + h;
      const S ms = scratch[2 * at];
      const T* g = G + (At.indices[q] * heads + h) * width;
      d_src += scratch[2 * at + 1];
      for (int k = 0; k < columns; ++k)
        if (const int64_t c = left + k * lanes; c < width) sum[k] += ms * static_cast<S>(g[c]);
    }
    S* of_piece = run.whole() ? nullptr : partial + run.place * heads * (width + 1);
    for (int k = 0; k < columns; ++k) {
      const int64_t c = left + k * lanes;
      sum[k] = device::sum_lanes<device::warp_lanes, lanes>(sum[k]);
      if (device::lane() >= lanes || c >= width) continue;
      if (of_piece)
        of_piece[h * width + c] = sum[k];
      else
        d.X[(run.row * heads + h) * width + c] = static_cast<T>(sum[k]);
    }
    d_src = device::sum_lanes<device::warp_lanes, lanes>(d_src);
    if (device::lane() > 0 || left > 0) continue;
    if (of_piece)
      of_piece[heads * width + h] = d_src;
    else
      d.alpha_src[run.row * heads + h] = static_cast<T>(d_src);
  }
}

}  // namespace gossamer::kernels
