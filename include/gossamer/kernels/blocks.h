// SPDX-License-Identifier: BSD-3-Clause
// A matrix put together from blocks, and where its entries come from:
//
//   C[row + i, col + j] = A[i, j] for each block A at (row, col)
//
// Entry q of C is entry positions[q] of the blocks' values, laid end to end.
// vstack moves `row`, hstack `col`, block_diag both. Blocks must not overlap, and those that share rows must come from
// left to right: then columns come out sorted. O(rows of the blocks + entries). Serial: it runs once per list.
#pragma once
#include <vector>

#include <gossamer/kernels/csr.h>

namespace gossamer::kernels {

template <class I>
struct Block {
  PatternView<I> A;
  int64_t row = 0, col = 0;
};

// indptr: rows + 1; indices, positions: the entries of all blocks.
template <class I, class J>
void blocks(const std::vector<Block<I>>& parts, int64_t rows, J* indptr, J* indices, J* positions) {
  std::vector<int64_t> next(rows + 1);
  for (const auto& [A, row, col] : parts)
    for (int64_t i = 0; i < A.rows; ++i) next[row + i + 1] += A.indptr[i + 1] - A.indptr[i];
  for (int64_t i = 0; i < rows; ++i) next[i + 1] += next[i];
  for (int64_t i = 0; i <= rows; ++i) indptr[i] = static_cast<J>(next[i]);
  int64_t before = 0;
  for (const auto& [A, row, col] : parts) {
    for (int64_t i = 0; i < A.rows; ++i)
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
        const int64_t q = next[row + i]++;
        indices[q] = static_cast<J>(col + A.indices[p]);
        positions[q] = static_cast<J>(before + p);
      }
    before += A.nnz;
  }
}

}  // namespace gossamer::kernels
