// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factor of an AssemblyTree as a sparse matrix by rows: L has an entry (i, j) where the elimination of A
// fills one in, that is, where j lies on a path of the elimination tree from an entry of row i up to i. The trapezoids
// store some zeros besides (assembly_tree.h), which are no entries. Where (i, k) and (j, k) are entries, i ≥ j, so is
// (i, j): products of such factors with their transposes stay on the pattern. O(entries of L).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gossamer/kernels/assembly_tree.h>

namespace gossamer {

// Rows and columns are numbered as they are eliminated; the diagonal is the last entry of its row.
struct FactorEntries {
  std::vector<int64_t> indptr;
  std::vector<int32_t> indices;
  std::vector<int64_t> places;  // of the entries, in the trapezoids
  std::vector<int64_t> at;      // which entry of L that of A is, or its mirror image

  int64_t count() const { return static_cast<int64_t>(indices.size()); }
};

namespace kernels {

// `A`: the pattern that the tree was made of.
template <class I>
FactorEntries factor_entries(const PatternView<I>& A, const AssemblyTree& tree) {
  FactorEntries L;
  const auto up = earlier_rows(A, tree.rank);
  const std::vector<int32_t> parent = elimination_tree(up), front_of = front_of_columns(tree);
  std::vector<int32_t> seen_by(tree.n, -1);
  std::vector<int64_t> cursor(tree.row_ptr.begin(), tree.row_ptr.end());  // of each front, among its rows
  L.indptr.push_back(0);
  for (int32_t i = 0; i < tree.n; ++i) {
    const int64_t begin = L.count();
    for (int32_t j : up[i])
      for (; j != i && seen_by[j] != i; j = parent[j]) {
        seen_by[j] = i;
        L.indices.push_back(j);
      }
    std::sort(L.indices.begin() + begin, L.indices.end());
    L.indices.push_back(i);
    for (int64_t q = begin; q < L.count(); ++q) {
      const int32_t j = L.indices[q];
      const int64_t s = front_of[j];
      while (tree.rows[cursor[s]] != i) ++cursor[s];
      L.places.push_back(tree.value_ptr[s] + (j - tree.first[s]) * tree.height(s) + cursor[s] - tree.row_ptr[s]);
    }
    L.indptr.push_back(L.count());
  }
  L.at.resize(A.nnz);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
      const auto [column, row] = std::minmax(tree.rank[i], tree.rank[A.indices[p]]);
      const auto first = L.indices.begin() + L.indptr[row], last = L.indices.begin() + L.indptr[row + 1];
      L.at[p] = std::lower_bound(first, last, column) - L.indices.begin();
    }
  return L;
}

// The values of the entries in the trapezoids, 0 elsewhere; and back.
template <class T>
void spread(const FactorEntries& L, const T* values, int64_t size, T* fronts) {
  std::fill(fronts, fronts + size, T{0});
  for (int64_t q = 0; q < L.count(); ++q) fronts[L.places[q]] = values[q];
}
template <class T>
void collect(const FactorEntries& L, const T* fronts, T* values) {
  for (int64_t q = 0; q < L.count(); ++q) values[q] = fronts[L.places[q]];
}

}  // namespace kernels
}  // namespace gossamer
