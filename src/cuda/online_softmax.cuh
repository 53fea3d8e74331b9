// SPDX-License-Identifier: BSD-3-Clause
// What the two kinds of graph attention share on a CUDA device. Per head, p over row i:
//
//   Z[i] = Σ_p m exp(e - lse[i]) X[indices[p]],    lse[i] = log Σ_p exp(e)        m: dropout, or 1
//
// and backward, with s = exp(e - lse[i]), for each entry: m s and de = s (m G[i]·X[indices[p]] - G[i]·Z[i]).
//
// A warp owns a run of one head, a row or a piece of a long one, and takes 32 entries at a time: lane k holds the score
// e of the k-th. For sums over columns and entries it is made of 32 / lanes groups: a group owns an entry, its lanes
// take columns side by side. `in` is a Gat or a Gatv2. scores(p, count) gives lane k the score of entry p + k and is
// called by the whole warp.
//
// Of a piece, the first pass leaves {top, total, sums} in `partial`, (places, heads, 2 + width): with top the largest
// score, total = Σ exp(e - top) and sums = Σ m exp(e - top) X. The second puts a row's pieces together in their order.
#pragma once
#include <gossamer/kernels/dropout.h>
#include "pieces.cuh"

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

// What scores are taken from before exp: their maximum, unless all are -∞ and have no weight.
template <class S>
__device__ inline S finite(S top) {
  return top == -INFINITY ? S{0} : top;
}

// The largest score of some entries, and total = Σ exp(e - top).
template <class S>
struct Weights {
  S top, total;
  __device__ void write(S* to) const { to[0] = top, to[1] = total; }
};

// Of a row, from those of its `count` pieces, which lie `stride` apart. Called by the whole warp.
template <class S>
__device__ inline Weights<S> weights_of_row(int64_t count, const S* pieces, int64_t stride) {
  S top = -INFINITY, total = 0;
  for (int64_t n = lane(); n < count; n += warp_lanes) top = pieces[n * stride] > top ? pieces[n * stride] : top;
  top = max_lanes(top);
  for (int64_t n = lane(); n < count; n += warp_lanes)
    total += pieces[n * stride + 1] * exp(pieces[n * stride] - finite(top));
  return {top, sum_lanes<warp_lanes, 1>(total)};
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
__device__ inline void attend(const In& in, const T* X, const Run& run, int64_t h, int64_t left, const Scores& scores,
                              T* __restrict__ Z, Sum<T>* __restrict__ lse, Sum<T>* __restrict__ partial) {
  using S = Sum<T>;
  constexpr int groups = warp_lanes / lanes;
  S top = -INFINITY, total = 0, sum[columns] = {};
  for (int64_t p = run.begin; p < run.end; p += warp_lanes) {
    const int count = static_cast<int>(min(run.end - p, static_cast<int64_t>(warp_lanes)));
    const S e = scores(p, count), before = top;
    top = max_lanes(lane() < count && e > top ? e : top);
    const S shift = finite(top), scale = exp(before - shift);
    S weight = lane() < count ? exp(e - shift) : S{0};
    total = total * scale + sum_lanes<warp_lanes, 1>(weight);
    if (in.dropout.any()) weight *= in.dropout.template factor<S>(in.dropout.first(p + lane(), in.heads) + h);
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
  const bool empty = run.begin == run.end;
  const int64_t row = run.row * in.heads + h;
  S* of_piece = run.whole() ? nullptr : partial + (run.place * in.heads + h) * (2 + in.width);
  for (int k = 0; k < columns; ++k) {
    const int64_t c = left + k * lanes;
    sum[k] = sum_lanes<warp_lanes, lanes>(sum[k]);
    if (lane() >= lanes || c >= in.width) continue;
    if (of_piece)
      of_piece[2 + c] = sum[k];
    else
      Z[row * in.width + c] = static_cast<T>(empty ? S{0} : sum[k] / total);
  }
  if (lane() > 0 || left > 0) return;
  if (of_piece)
    Weights<S>{top, total}.write(of_piece);
  else
    lse[row] = empty ? S{0} : top + log(total);
}

// The whole grid: a warp owns a tile of columns of Z[i, h], or of a piece of row i. score(i, p, count, h) is
// scores(p, count) of row i and head h.
template <int lanes, int columns, class In, class T, class Score>
__device__ inline void attend_tiles(const In& in, const T* X, const Score& score, T* __restrict__ Z,
                                    Sum<T>* __restrict__ lse, Sum<T>* __restrict__ partial) {
  constexpr int64_t tile = lanes * columns;
  const int64_t tiles = tiles_of(in.width, tile);
  for (int64_t job = warp(); job < runs_of(in.A) * in.heads * tiles; job += warps()) {
    const Run run = run_at(in.A, job / tiles / in.heads);
    if (!run.any()) continue;
    const int64_t h = job / tiles % in.heads;
    const auto scores = [&](int64_t p, int count) { return score(run.row, p, count, h); };
    attend<lanes, columns>(in, X, run, h, job % tiles * tile + lane() % lanes, scores, Z, lse, partial);
  }
}

// The second pass: Z and lse of long rows. A warp owns 32 columns of one head; a lane adds the pieces of its column,
// with several exponentials under way, which want registers; there are few such warps.
template <class T, class I>
__global__ void __launch_bounds__(block_threads)
    attend_pieces(PatternView<I> A, int64_t heads, int64_t width, const Sum<T>* __restrict__ partial, T* __restrict__ Z,
                  Sum<T>* __restrict__ lse) {
  using S = Sum<T>;
  const int64_t tiles = tiles_of(width, warp_lanes), stride = heads * (2 + width);
  for (int64_t job = warp(); job < kernels::piece_places(A.nnz) * heads * tiles; job += warps()) {
    const Run piece = piece_at(A, job / tiles / heads);
    if (!piece.first()) continue;
    const int64_t h = job / tiles % heads, c = job % tiles * warp_lanes + lane(), row = piece.row * heads + h;
    const S* of_pieces = partial + piece.place * stride + h * (2 + width);
    const Weights<S> all = weights_of_row(piece.count, of_pieces, stride);
    const S shift = finite(all.top);
    if (c < width) {
      const S sum = sum_in_order<S>(
          piece.count, [&](int64_t n) { return of_pieces[n * stride + 2 + c] * exp(of_pieces[n * stride] - shift); });
      Z[row * width + c] = static_cast<T>(sum / all.total);
    }
    if (c == 0) lse[row] = all.top + log(all.total);
  }
}

template <class In, class T>
void launch_attend_pieces(Cuda exec, const In& in, const Sum<T>* partial, T* Z, Sum<T>* lse) {
  const int64_t warps = kernels::piece_places(in.A.nnz) * in.heads * tiles_of(in.width, warp_lanes);
  using I = std::remove_cvref_t<decltype(*in.A.indptr)>;
  launch_warps(exec, attend_pieces<T, I>, warps, in.A, in.heads, in.width, partial, Z, lse);
}

// Calls take(p, m s, de) for each entry p of a run, once, by the lane that holds it.
template <int lanes, class In, class T, class Scores, class Take>
__device__ inline void soften(const In& in, const T* X, const Run& run, int64_t h, const T* G, const T* Z,
                              const Sum<T>* lse, const Scores& scores, const Take& take) {
  using S = Sum<T>;
  const int64_t row = run.row * in.heads + h, width = in.width;
  const T *g = G + row * width, *z = Z + row * width;
  S GZ = 0;
  for (int64_t c = lane(); c < width; c += warp_lanes) GZ += static_cast<S>(g[c]) * static_cast<S>(z[c]);
  GZ = sum_lanes<warp_lanes, 1>(GZ);
  for (int64_t p = run.begin; p < run.end; p += warp_lanes) {
    const int count = static_cast<int>(min(run.end - p, static_cast<int64_t>(warp_lanes)));
    const S e = scores(p, count);
    const S GX = sums_of_columns<lanes, S>(p, count, width, [&](int64_t q) {
      const T* x = X + (in.A.indices[q] * in.heads + h) * width;
      return [=](int64_t c) { return static_cast<S>(g[c]) * static_cast<S>(x[c]); };
    });
    if (lane() >= count) continue;
    const S s = exp(e - lse[row]);
    const S m = in.dropout.any() ? in.dropout.template factor<S>(in.dropout.first(p + lane(), in.heads) + h) : S{1};
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
