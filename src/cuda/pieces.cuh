// SPDX-License-Identifier: BSD-3-Clause
// What a warp takes of a pattern: a short row, or one piece of a long one (gossamer/pieces.h). No list of the pieces is
// made: place c asks the row that holds entry (c + 1) · piece_entries - 1 whether one of its pieces begins there.
// Nobody copies, counts or waits, and a matrix without long rows pays one search for every piece_entries entries.
#pragma once
#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/half.h>
#include <gossamer/kernels/pieces.h>
#include "warp.cuh"

namespace gossamer::device {

// Entries begin … end - 1 of a row.
struct Run {
  int64_t row = -1, begin = 0, end = 0;
  int64_t place = -1;             // of what is found for the piece, in the scratch; -1: the run is the whole row
  int64_t number = 0, count = 1;  // piece `number` of `count`, whose places follow each other

  __device__ bool any() const { return row >= 0; }
  __device__ bool whole() const { return place < 0; }
  __device__ bool first() const { return row >= 0 && number == 0; }
};

// The row that holds entry p. O(log rows), and neighbouring threads walk the same path.
template <class I>
__device__ inline int64_t row_of(const PatternView<I>& A, int64_t p) {
  int64_t low = 0, high = A.rows - 1;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (A.indptr[middle + 1] <= p)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The piece with this place, if there is one.
template <class I>
__device__ inline Run piece_at(const PatternView<I>& A, int64_t place) {
  constexpr int64_t entries = kernels::piece_entries;
  const int64_t last = (place + 1) * entries - 1, row = row_of(A, last);
  const int64_t begin = A.indptr[row], end = A.indptr[row + 1];
  const int64_t number = (last - begin) / entries, count = (end - begin) / entries;
  if (end - begin <= kernels::longest_row || number >= count) return {};  // short; or the remainder of the last piece
  const int64_t from = begin + number * entries;
  return {row, from, number + 1 == count ? end : from + entries, place, number, count};
}

// Row i, unless it is long.
template <class I>
__device__ inline Run short_row(const PatternView<I>& A, int64_t i) {
  const int64_t begin = A.indptr[i], end = A.indptr[i + 1];
  if (end - begin > kernels::longest_row) return {};
  return {i, begin, end};
}

// All that is to be done for a pattern: the pieces, which take longest, come first, then the rows.
template <class I>
GOSSAMER_HD int64_t runs_of(const PatternView<I>& A) {
  return kernels::piece_places(A.nnz) + A.rows;
}
template <class I>
__device__ inline Run run_at(const PatternView<I>& A, int64_t n) {
  const int64_t places = kernels::piece_places(A.nnz);
  return n < places ? piece_at(A, n) : short_row(A, n - places);
}

// Σ_n term(n) for n < count, in this order, with several terms on their way from memory at once.
template <class S, class Term>
__device__ inline S sum_in_order(int64_t count, const Term& term) {
  constexpr int at_once = 8;
  S sum = 0;
  for (int64_t n = 0; n < count; n += at_once) {
    S held[at_once];
    for (int k = 0; k < at_once; ++k) held[k] = n + k < count ? term(n + k) : S{0};
    for (int k = 0; k < at_once; ++k) sum += held[k];
  }
  return sum;
}

// The second pass of a sum: out[i, c] = Σ_n partial[place of piece n of row i, c] for long rows i. The columns from
// `split` on go to a second array of their own, `rest`. The warp is made of 32 / lanes groups: a lane owns a column,
// the groups share the pieces, and their sums meet in a shuffle tree.
template <int lanes, class T, class I>
__global__ void __launch_bounds__(block_threads, blocks_at_once)
    add_pieces(PatternView<I> A, int64_t columns, int64_t split, const Sum<T>* __restrict__ partial,
               T* __restrict__ out, T* __restrict__ rest) {
  constexpr int groups = warp_lanes / lanes;
  const int64_t tiles = (columns + lanes - 1) / lanes;
  for (int64_t job = warp(); job < kernels::piece_places(A.nnz) * tiles; job += warps()) {
    const Run piece = piece_at(A, job / tiles);
    if (!piece.first()) continue;
    const int64_t c = job % tiles * lanes + lane() % lanes, group = lane() / lanes;
    Sum<T> sum = 0;
    if (c < columns)
      sum = sum_in_order<Sum<T>>((piece.count - group + groups - 1) / groups,
                                 [&](int64_t n) { return partial[(piece.place + group + n * groups) * columns + c]; });
    sum = sum_lanes<warp_lanes, lanes>(sum);
    if (group > 0 || c >= columns) continue;
    if (c < split)
      out[piece.row * split + c] = static_cast<T>(sum);
    else
      rest[piece.row * (columns - split) + c - split] = static_cast<T>(sum);
  }
}

// Queues the second pass; nothing for a pattern that is too small for a long row.
template <class T, class I>
void launch_add_pieces(Cuda exec, const PatternView<I>& A, int64_t columns, int64_t split, const Sum<T>* partial,
                       T* out, T* rest) {
  const int64_t places = kernels::piece_places(A.nnz), tiles = (columns + warp_lanes - 1) / warp_lanes;
  if (columns == 1)
    launch_warps(exec, add_pieces<1, T, I>, places, A, columns, split, partial, out, rest);
  else
    launch_warps(exec, add_pieces<warp_lanes, T, I>, places * tiles, A, columns, split, partial, out, rest);
}

}  // namespace gossamer::device
