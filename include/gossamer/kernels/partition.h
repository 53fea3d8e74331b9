// SPDX-License-Identifier: BSD-3-Clause
// Rows of a matrix to processes.
//
// A row weighs its entries + 1: what it costs to multiply and what it costs to store. Without the entries, a graph with
// a few large nodes overloads whoever gets them; without the 1, empty rows would be free.
//
//   contiguous    row i goes to the part in which the middle of its weight lies:
//                 part[i] = floor(parts · (weight before i + weight of i / 2) / weight of all)        O(rows)
//   undirected    who is i's neighbour in A or in Aᵀ, each once, i itself not: the graph that partitioners want.
//                 Columns need not be sorted nor unique.                                          O(rows + nnz)
#pragma once
#include <cstdint>
#include <vector>

#include <gossamer/kernels/csr.h>

namespace gossamer::kernels {

template <class I>
int64_t row_weight(const I* indptr, int64_t i) {
  return int64_t{indptr[i + 1]} - indptr[i] + 1;
}

// part: rows, ascending. More parts than rows leave some without any.
template <class I>
void contiguous_parts(int64_t rows, const I* indptr, int64_t parts, int64_t* part) {
  const auto all = static_cast<double>(rows ? int64_t{indptr[rows]} + rows : 1);
  for (int64_t i = 0; i < rows; ++i) {
    const auto middle = static_cast<double>(2 * (int64_t{indptr[i]} + i) + row_weight(indptr, i)) / 2;
    part[i] = static_cast<int64_t>(static_cast<double>(parts) * (middle / all));
  }
}

// f(i, j) for each neighbour j of each i, rows ascending. T: the transpose of A, which is square.
template <class I, class F>
void for_each_neighbour(const PatternView<I>& A, const PatternView<I>& T, const F& f) {
  std::vector<int64_t> seen_by(static_cast<size_t>(A.rows), -1);
  for (int64_t i = 0; i < A.rows; ++i) {
    seen_by[i] = i;
    for (const PatternView<I>* rows : {&A, &T})
      for (int64_t p = rows->indptr[i]; p < rows->indptr[i + 1]; ++p) {
        const int64_t j = rows->indices[p];
        if (seen_by[j] == i) continue;
        seen_by[j] = i;
        f(i, j);
      }
  }
}

// Returns the number of neighbours of all rows. ptr: rows + 1.
template <class I, class J>
int64_t undirected_ptr(const PatternView<I>& A, const PatternView<I>& T, J* ptr) {
  for (int64_t i = 0; i <= A.rows; ++i) ptr[i] = 0;
  for_each_neighbour(A, T, [&](int64_t i, int64_t) { ++ptr[i + 1]; });
  for (int64_t i = 0; i < A.rows; ++i) ptr[i + 1] += ptr[i];
  return ptr[A.rows];
}

// neighbours: as many as undirected_ptr returned.
template <class I, class J>
void undirected_neighbours(const PatternView<I>& A, const PatternView<I>& T, J* neighbours) {
  for_each_neighbour(A, T, [&](int64_t, int64_t j) { *neighbours++ = static_cast<J>(j); });
}

}  // namespace gossamer::kernels
