// SPDX-License-Identifier: BSD-3-Clause
// What elimination of a symmetric pattern will do, found once per pattern: the tree of *fronts* of its Cholesky factor.
//
// The elimination tree (Liu 1990): the parent of column j is the first row below the diagonal of column j of L. A front
// is a run of columns J that have, but for the triangle among them, the same rows R below; it is stored as a dense
// trapezoid of the rows J, R and the columns J. Elimination of J changes entries (R, R) alone, and R, but for the
// columns of the parent's front, is part of the parent's R: the changes are added there, front by front, from the
// leaves up.
//
// Small fronts are joined with their parents at the price of some zeros that are stored (`relaxed`). O(entries of L).
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gossamer/kernels/csr.h>

namespace gossamer {

// Fronts 0 … count - 1, each after those below it in the tree. Columns and rows are numbered as they are eliminated.
struct AssemblyTree {
  int64_t n = 0;
  std::vector<int32_t> rank;      // row k of the matrix is eliminated as number rank[k]
  std::vector<int32_t> first;     // front s has the columns first[s] … first[s + 1] - 1
  std::vector<int32_t> parent;    // the front that takes its changes; -1: nothing is left to change
  std::vector<int32_t> youngest;  // the first front of the subtree of s, which is youngest[s] … s
  std::vector<int64_t> row_ptr;   // rows[row_ptr[s] …]: J and then R, ascending
  std::vector<int32_t> rows;
  std::vector<int32_t> in_parent;  // beside rows: where a row of R is among those of the parent's front
  std::vector<int64_t> value_ptr;  // the trapezoid of front s begins here, by columns
  // Where an entry of the matrix is in L, if its row is eliminated after its column, or with it; else ~ of where its
  // mirror image is.
  std::vector<int64_t> destination;
  std::vector<double> work;  // multiplications of the subtree of s

  int64_t count() const { return static_cast<int64_t>(parent.size()); }
  int64_t columns(int64_t s) const { return first[s + 1] - first[s]; }
  int64_t height(int64_t s) const { return row_ptr[s + 1] - row_ptr[s]; }  // of the trapezoid
  int64_t below(int64_t s) const { return height(s) - columns(s); }        // |R|
  int64_t size() const { return value_ptr.back(); }                        // of L, with what is stored above diagonals
};

namespace kernels {

// parent[j] of each column in the elimination tree, -1 for a root; `up` is the upper triangle by columns, that is, for
// each row the earlier ones it has entries with. Paths are shortened while they are walked.
inline std::vector<int32_t> elimination_tree(const std::vector<std::vector<int32_t>>& up) {
  const auto n = static_cast<int32_t>(up.size());
  std::vector<int32_t> parent(n, -1), above(n, -1);
  for (int32_t i = 0; i < n; ++i)
    for (int32_t j : up[i])
      while (j != -1 && j < i) {
        const int32_t next = above[j];
        above[j] = i;
        if (next == -1) parent[j] = i;
        j = next;
      }
  return parent;
}

// The columns so numbered that every subtree is a run that ends in its root; children keep their order.
inline std::vector<int32_t> postorder(const std::vector<int32_t>& parent) {
  const auto n = static_cast<int32_t>(parent.size());
  std::vector<int32_t> child(n, -1), sibling(n, -1), number(n), stack;
  for (int32_t j = n; j-- > 0;)
    if (parent[j] >= 0) sibling[j] = std::exchange(child[parent[j]], j);
  int32_t next = 0;
  for (int32_t root = 0; root < n; ++root) {
    if (parent[root] >= 0) continue;
    stack.push_back(root);
    while (!stack.empty()) {
      const int32_t j = stack.back();
      if (child[j] >= 0) {
        stack.push_back(child[j]);
        child[j] = sibling[child[j]];  // what is left to visit
      } else {
        number[j] = next++;
        stack.pop_back();
      }
    }
  }
  return number;
}

// Entries of each column of L: column j has row i if j is on a path from an entry of row i up to i.
inline std::vector<int32_t> column_counts(const std::vector<std::vector<int32_t>>& up,
                                          const std::vector<int32_t>& parent) {
  const auto n = static_cast<int32_t>(up.size());
  std::vector<int32_t> counts(n, 1), seen_by(n, -1);
  for (int32_t i = 0; i < n; ++i) {
    seen_by[i] = i;
    for (int32_t j : up[i])
      for (; seen_by[j] != i; j = parent[j]) {
        seen_by[j] = i;
        ++counts[j];
      }
  }
  return counts;
}

// Whether a front of so many columns is better off with `zeros` of its `entries` stored than as two: a few columns
// always, more of them if the zeros are few.
inline bool relaxed(int64_t columns, int64_t zeros, int64_t entries) {
  const double part = static_cast<double>(zeros) / static_cast<double>(entries);
  return columns <= 4 || (columns <= 16 && part < 0.4) || (columns <= 48 && part < 0.1) || part < 0.05;
}

// Where fronts begin, and n. A column joins the front of the column before it if that is its child and no other brings
// rows (then nothing is stored in vain), or else if the front that results is `relaxed`.
inline std::vector<int32_t> front_columns(const std::vector<int32_t>& parent, const std::vector<int32_t>& counts) {
  struct Run {
    int64_t first, zeros;
  };
  const auto n = static_cast<int64_t>(parent.size());
  std::vector<Run> runs;
  std::vector<int32_t> children(n, 0);
  for (int64_t j = 0; j < n; ++j)
    if (parent[j] >= 0) ++children[parent[j]];
  for (int64_t j = 0; j < n;) {
    int64_t end = j + 1;  // the run j … end - 1 without zeros
    while (end < n && parent[end - 1] == end && counts[end] == counts[end - 1] - 1 && children[end] == 1) ++end;
    Run run{j, 0};
    while (!runs.empty() && parent[run.first - 1] >= run.first && parent[run.first - 1] < end) {
      const Run& last = runs.back();
      const int64_t width = run.first - last.first, columns = end - last.first;
      const int64_t height = end - run.first + counts[end - 1] - 1;  // of this run: what each column of the last gets
      const int64_t had = counts[run.first - 1] - 1;                 // rows below the last run
      const int64_t zeros = last.zeros + run.zeros + width * (height - had);
      if (!relaxed(columns, zeros, columns * (columns + 1) / 2 + columns * (counts[end - 1] - 1))) break;
      run = {last.first, zeros};
      runs.pop_back();
    }
    runs.push_back(run);
    j = end;
  }
  std::vector<int32_t> first;
  for (const Run& run : runs) first.push_back(static_cast<int32_t>(run.first));
  first.push_back(static_cast<int32_t>(n));
  return first;
}

// The earlier rows that each row of A, numbered by `rank`, has entries with.
template <class I>
std::vector<std::vector<int32_t>> earlier_rows(const PatternView<I>& A, const std::vector<int32_t>& rank) {
  std::vector<std::vector<int32_t>> up(A.rows);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      if (const int32_t j = rank[A.indices[p]]; j < rank[i]) up[rank[i]].push_back(j);
  return up;
}

// The front of each column.
inline std::vector<int32_t> front_of_columns(const AssemblyTree& tree) {
  std::vector<int32_t> front_of(tree.n);
  for (size_t s = 0; s + 1 < tree.first.size(); ++s)
    std::fill(front_of.begin() + tree.first[s], front_of.begin() + tree.first[s + 1], static_cast<int32_t>(s));
  return front_of;
}

// Rows, parents and sizes of the fronts: the rows of a front are those of its entries in A and of its children.
inline void find_rows(const std::vector<std::vector<int32_t>>& up, AssemblyTree& tree) {
  const auto n = tree.n;
  const auto count = static_cast<int64_t>(tree.first.size()) - 1;
  const std::vector<int32_t> front_of = front_of_columns(tree);
  std::vector<int32_t> mark(n, -1);
  std::vector<std::vector<int32_t>> down(n), children(count);
  for (int64_t i = 0; i < n; ++i)
    for (const int32_t j : up[i]) down[j].push_back(static_cast<int32_t>(i));
  tree.parent.assign(count, -1);
  tree.youngest.resize(count);
  tree.work.assign(count, 0);
  tree.row_ptr.push_back(0);
  tree.value_ptr.push_back(0);
  for (int64_t s = 0; s < count; ++s) {
    const int32_t end = tree.first[s + 1];
    for (int32_t j = tree.first[s]; j < end; ++j) tree.rows.push_back(j);
    const auto R = static_cast<int64_t>(tree.rows.size());
    const auto visit = [&](int32_t row) {
      if (row < end || mark[row] == s) return;
      mark[row] = static_cast<int32_t>(s);
      tree.rows.push_back(row);
    };
    tree.youngest[s] = static_cast<int32_t>(children[s].empty() ? s : tree.youngest[children[s].front()]);
    for (int32_t j = tree.first[s]; j < end; ++j)
      for (const int32_t row : down[j]) visit(row);
    for (const int32_t k : children[s]) {
      tree.work[s] += tree.work[k];
      for (int64_t q = tree.row_ptr[k] + tree.columns(k); q < tree.row_ptr[k + 1]; ++q) visit(tree.rows[q]);
    }
    std::sort(tree.rows.begin() + R, tree.rows.end());
    tree.row_ptr.push_back(static_cast<int64_t>(tree.rows.size()));
    if (tree.below(s) > 0) {
      tree.parent[s] = front_of[tree.rows[R]];
      children[tree.parent[s]].push_back(static_cast<int32_t>(s));
    }
    const auto height = static_cast<double>(tree.height(s)), below = static_cast<double>(tree.below(s));
    tree.work[s] += static_cast<double>(tree.columns(s)) * (height * height + height * below + below * below) / 6;
    tree.value_ptr.push_back(tree.value_ptr.back() + tree.columns(s) * tree.height(s));
  }
  tree.in_parent.assign(tree.rows.size(), -1);
  for (int64_t s = 0; s < count; ++s)
    if (const int64_t p = tree.parent[s]; p >= 0) {
      int64_t at = tree.row_ptr[p];
      for (int64_t q = tree.row_ptr[s] + tree.columns(s); q < tree.row_ptr[s + 1]; ++q) {
        while (tree.rows[at] != tree.rows[q]) ++at;
        tree.in_parent[q] = static_cast<int32_t>(at - tree.row_ptr[p]);
      }
    }
}

// An entry is in the trapezoid of the front that eliminates it first.
template <class I>
void find_destinations(const PatternView<I>& A, AssemblyTree& tree) {
  const std::vector<int32_t> front_of = front_of_columns(tree);
  tree.destination.resize(A.nnz);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
      const int32_t k = tree.rank[i], l = tree.rank[A.indices[p]];
      const auto [column, row] = std::minmax(k, l);
      const int64_t s = front_of[column];
      const auto begin = tree.rows.begin() + tree.row_ptr[s], end = tree.rows.begin() + tree.row_ptr[s + 1];
      const int64_t at = std::lower_bound(begin, end, row) - begin;
      const int64_t place = tree.value_ptr[s] + (column - tree.first[s]) * tree.height(s) + at;
      tree.destination[p] = k >= l ? place : ~place;
    }
}

// Of a symmetric pattern. order[k]: as which number row k shall be eliminated; it is, but for what makes subtrees
// follow one another.
template <class I>
AssemblyTree assembly_tree(const PatternView<I>& A, const std::vector<int32_t>& order) {
  if (A.rows >= std::numeric_limits<int32_t>::max()) throw std::length_error("assembly_tree: 2^31 - 1 rows or more");
  if (A.rows != A.cols || static_cast<int64_t>(order.size()) != A.rows)
    throw std::invalid_argument("assembly_tree: the matrix must be square, and the order name each of its rows");
  AssemblyTree tree;
  tree.n = A.rows;
  const std::vector<int32_t> number = postorder(elimination_tree(earlier_rows(A, order)));
  tree.rank.resize(A.rows);
  for (int64_t k = 0; k < A.rows; ++k) tree.rank[k] = number[order[k]];
  const auto up = earlier_rows(A, tree.rank);
  const std::vector<int32_t> parent = elimination_tree(up);
  tree.first = front_columns(parent, column_counts(up, parent));
  find_rows(up, tree);
  find_destinations(A, tree);
  return tree;
}

}  // namespace kernels
}  // namespace gossamer
