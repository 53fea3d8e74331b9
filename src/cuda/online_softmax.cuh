// SPDX-License-Identifier: BSD-3-Clause
// What the two kinds of graph attention share on a CUDA device. Per head, p over row i:
//
//   Z[i] = Σ_p m exp(e - lse[i]) X[indices[p]],    lse[i] = log Σ_p exp(e)        m: dropout, or 1
//
// and backward, with s = exp(e - lse[i]), for each entry: m s and de = s (m G[i]·X[indices[p]] - G[i]·Z[i]).
//
// A warp owns a row of one head and takes 32 entries at a time: lane k holds the score e of the k-th. For sums over
// columns and entries it is made of 32 / lanes groups: a group owns an entry, its lanes take columns side by side. `in`
// is a Gat or a Gatv2. scores(p, count) gives lane k the score of entry p + k and is called by the whole warp.
#pragma once
#include <gossamer/kernels/dropout.h>
#include "warp.cuh"

namespace gossamer::device {

// Blocks at once on a multiprocessor: 80 registers a thread, 96 for double. Aiming higher, ptxas spills.
template <class T>
inline constexpr int attention_blocks = sizeof(T) == 8 ? 5 : 6;

// A head in tiles of as many columns as the lanes hold; a head without columns is one tile, too.
GOSSAMER_HD constexpr int64_t tiles_of(int64_t width, int64_t tile) {
  return width <= tile ? 1 : (width + tile - 1) / tile;
}

template <class S>
__device__ inline S slope_at(S t, S slope) {
  return t > 0 ? S{1} : slope;
}

// Lane k returns Σ_c term(p + k)(c) over `width` columns, k < count ≤ 32. Called by the whole warp.
template <int lanes, class S, class Term>
__device__ inline S sums_of_columns(int64_t p, int count, int64_t width, const Term& term) {
  constexpr int groups = warp_lanes / lanes;
  S mine = 0;
  for (int step = 0; step < count; step += groups) {
    const int from = step + lane() / lanes;
    S sum = 0;
    if (from < count) {
      const auto at = term(p + from);
      for (int64_t c = lane() % lanes; c < width; c += lanes) sum += at(c);
    }
    sum = sum_lanes<lanes, 1>(sum);
    const S other = __shfl_sync(full_warp, sum, lane() % groups * lanes);  // lane step + g reads group g
    if (lane() / groups == step / groups) mine = other;
  }
  return mine;
}

// Z[i, h, left + k · lanes] for k < columns, where `left` is this lane's first column; with the first tile, lse[i, h].
// The largest score so far and sums scaled by it are kept from 32 entries to the next, so no finite score overflows.
template <int lanes, int columns, class In, class T, class Scores>
__device__ inline void attend(const In& in, const T* X, int64_t i, int64_t h, int64_t left, const Scores& scores,
                              T* __restrict__ Z, Sum<T>* __restrict__ lse) {
  using S = Sum<T>;
  constexpr int groups = warp_lanes / lanes;
  const int64_t begin = in.A.indptr[i], end = in.A.indptr[i + 1], row = i * in.heads + h;
  S top = -INFINITY, total = 0, sum[columns] = {};
  for (int64_t p = begin; p < end; p += warp_lanes) {
    const int count = static_cast<int>(min(end - p, static_cast<int64_t>(warp_lanes)));
    const S e = scores(p, count), before = top;
    top = max_lanes(lane() < count && e > top ? e : top);
    const S shift = top == -INFINITY ? S{0} : top, scale = exp(before - shift);
    S weight = lane() < count ? exp(e - shift) : S{0};
    total = total * scale + sum_lanes<warp_lanes, 1>(weight);
    if (in.dropout.any()) weight *= in.dropout.template factor<S>((p + lane()) * in.heads + h);
    for (int k = 0; k < columns; ++k) sum[k] *= scale;
    for (int step = 0; step < count; step += groups) {
      const int from = step + lane() / lanes;
      const S a = __shfl_sync(full_warp, weight, from);
      if (from >= count) continue;
      const T* x = X + (in.A.indices[p + from] * in.heads + h) * in.width;
      for (int k = 0; k < columns; ++k)
        if (const int64_t c = left + k * lanes; c < in.width) sum[k] += a * static_cast<S>(x[c]);
    }
  }
  for (int k = 0; k < columns; ++k) {
    const int64_t c = left + k * lanes;
    sum[k] = sum_lanes<warp_lanes, lanes>(sum[k]);
    if (lane() < lanes && c < in.width) Z[row * in.width + c] = static_cast<T>(begin == end ? S{0} : sum[k] / total);
  }
  if (lane() == 0 && left == 0) lse[row] = begin == end ? S{0} : top + log(total);
}

// The whole grid: a warp owns a tile of columns of Z[i, h]. score(i, p, count, h) is scores(p, count) of row i and head
// h.
template <int lanes, int columns, class In, class T, class Score>
__device__ inline void attend_tiles(const In& in, const T* X, const Score& score, T* __restrict__ Z,
                                    Sum<T>* __restrict__ lse) {
  constexpr int64_t tile = lanes * columns;
  const int64_t tiles = tiles_of(in.width, tile);
  for (int64_t job = warp(); job < in.A.rows * in.heads * tiles; job += warps()) {
    const int64_t i = job / tiles / in.heads, h = job / tiles % in.heads;
    const auto scores = [&](int64_t p, int count) { return score(i, p, count, h); };
    attend<lanes, columns>(in, X, i, h, job % tiles * tile + lane() % lanes, scores, Z, lse);
  }
}

// Calls take(p, m s, de) for each entry p of row i, once, by the lane that holds it.
template <int lanes, class In, class T, class Scores, class Take>
__device__ inline void soften(const In& in, const T* X, int64_t i, int64_t h, const T* G, const T* Z, const Sum<T>* lse,
                              const Scores& scores, const Take& take) {
  using S = Sum<T>;
  const int64_t end = in.A.indptr[i + 1], row = i * in.heads + h, width = in.width;
  const T *g = G + row * width, *z = Z + row * width;
  S GZ = 0;
  for (int64_t c = lane(); c < width; c += warp_lanes) GZ += static_cast<S>(g[c]) * static_cast<S>(z[c]);
  GZ = sum_lanes<warp_lanes, 1>(GZ);
  for (int64_t p = in.A.indptr[i]; p < end; p += warp_lanes) {
    const int count = static_cast<int>(min(end - p, static_cast<int64_t>(warp_lanes)));
    const S e = scores(p, count);
    const S GX = sums_of_columns<lanes, S>(p, count, width, [&](int64_t q) {
      const T* x = X + (in.A.indices[q] * in.heads + h) * width;
      return [=](int64_t c) { return static_cast<S>(g[c]) * static_cast<S>(x[c]); };
    });
    if (lane() >= count) continue;
    const S s = exp(e - lse[row]);
    const S m = in.dropout.any() ? in.dropout.template factor<S>((p + lane()) * in.heads + h) : S{1};
    take(p + lane(), m * s, s * (m * GX - GZ));
  }
}

// Calls f<lanes, columns>() with the layout for heads of this width. A head wider than 128 columns takes several warps,
// each of which makes the scores anew.
template <class F>
void with_layout(int64_t width, const F& f) {
  if (width <= 32) return f.template operator()<8, 4>();
  return f.template operator()<32, 4>();
}

}  // namespace gossamer::device
