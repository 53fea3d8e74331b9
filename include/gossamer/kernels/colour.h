// SPDX-License-Identifier: BSD-3-Clause
// Colours for the rows of a pattern: two rows that share a column get different ones.
//
//   first fit    the smallest colour that no earlier row has with which row i shares a column
//   round robin  of as many colours as the longest column has entries, which is the least that can do, and more if
//   those
//                do not: the first that is free after that of row i - 1
//
// The first is the better one for irregular patterns (random, 6 a row: 21 colours, not 30), the second for grids (2-D:
// 5, not 7; 3-D: 7, not 13). `colour` takes the better of both.
//
// Columns of a Jacobian that share no row can be differentiated together (Curtis, Powell and Reid): they are the rows
// of the transposed pattern, so colour(Aᵀ) serves J v, and colour(A) serves vᵀ J.
//
// Each column remembers which of 64 colours its rows have, a bit a colour: O(nnz). By first fit, rows that find all 64
// taken wait for the next round of 64. Serial, so that there is one result.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// colour: rows. Returns the number of colours.
template <class I>
int64_t first_fit(const PatternView<I>& A, I* colour) {
  constexpr uint64_t all = ~uint64_t{0};
  std::vector<uint64_t> taken(static_cast<size_t>(A.cols));
  std::vector<I> waiting(static_cast<size_t>(A.rows));
  std::iota(waiting.begin(), waiting.end(), I{0});
  int64_t colours = 0;
  for (int64_t first = 0; !waiting.empty(); first += 64) {
    std::fill(taken.begin(), taken.end(), uint64_t{0});
    const auto must_wait = [&](I i) {
      uint64_t mask = 0;
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1] && mask != all; ++p) mask |= taken[A.indices[p]];
      if (mask == all) return true;
      const int c = std::countr_one(mask);
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) taken[A.indices[p]] |= uint64_t{1} << c;
      colour[i] = static_cast<I>(first + c);
      colours = std::max(colours, first + c + 1);
      return false;
    };
    size_t left = 0;
    for (const I i : waiting)
      if (must_wait(i)) waiting[left++] = i;
    waiting.resize(left);
  }
  return colours;
}

// From `colours` ≥ 1 on, `step` colours after that of the row before. Returns their number, or 0 if 64 do not suffice.
template <class I>
int64_t round_robin(const PatternView<I>& A, int64_t colours, int64_t step, I* colour) {
  std::vector<uint64_t> taken(static_cast<size_t>(A.cols));
  for (int64_t i = 0, last = 0; i < A.rows; ++i) {
    if (colours > 64) return 0;
    uint64_t mask = 0;
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) mask |= taken[A.indices[p]];
    const int64_t start = (last + step) % colours;
    const uint64_t free = ~mask & (~uint64_t{0} >> (64 - colours)), after = free >> start << start;
    last = free == 0 ? colours++ : std::countr_zero(after ? after : free);
    if (last == 64) return 0;
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) taken[A.indices[p]] |= uint64_t{1} << last;
    colour[i] = static_cast<I>(last);
  }
  return colours;
}

// The better of both. colour: rows; returns the number of colours.
template <class I>
int64_t colour(const PatternView<I>& A, I* colour) {
  int64_t colours = first_fit(A, colour);
  std::vector<I> count(static_cast<size_t>(A.cols)), other(static_cast<size_t>(A.rows));
  for (int64_t p = 0; p < A.nnz; ++p) ++count[A.indices[p]];
  const int64_t least = A.nnz == 0 ? 1 : *std::max_element(count.begin(), count.end());
  for (int64_t step = 1; step <= 3 && colours > least && least <= 64; ++step) {
    const int64_t found = round_robin(A, least, step, other.data());
    if (found == 0 || found >= colours) continue;
    std::copy(other.begin(), other.end(), colour);
    colours = found;
  }
  return colours;
}

// Where entry p = (i, j) of A lies among the products with the seeds of all colours, Y:
//   by columns, Y (colours, rows) holds J v:   at[p] = colour[j] · rows + i
//   by rows,    Y (colours, cols) holds vᵀ J:  at[p] = colour[i] · cols + j
template <class I>
void colour_places(const PatternView<I>& A, const I* colour, bool by_columns, int64_t* at) {
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
      const int64_t j = A.indices[p];
      at[p] = by_columns ? int64_t{colour[j]} * A.rows + i : int64_t{colour[i]} * A.cols + j;
    }
}

// Compiled once: src/cpu/colour.cpp.
#define GOSSAMER_COLOUR(I, ...)                                                          \
  __VA_ARGS__ template int64_t first_fit(const PatternView<I>&, I*);                     \
  __VA_ARGS__ template int64_t round_robin(const PatternView<I>&, int64_t, int64_t, I*); \
  __VA_ARGS__ template int64_t colour(const PatternView<I>&, I*);                        \
  __VA_ARGS__ template void colour_places(const PatternView<I>&, const I*, bool, int64_t*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_COLOUR, extern)
#endif

}  // namespace gossamer::kernels
