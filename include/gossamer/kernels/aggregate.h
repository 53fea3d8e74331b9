// SPDX-License-Identifier: BSD-3-Clause
// Smoothed aggregation, the part that is found once: which nodes hang together, the groups of them that are the nodes
// of the next level, and the prolongation of given vectors.
//
//   strong     I ≠ J with ‖A_IJ‖² > θ² ‖A_II‖ ‖A_JJ‖, Frobenius norms of the blocks of two nodes
//   aggregate  a node and all it hangs on strongly, as long as none of them is taken; then the nodes in between
//   tentative  T with T R = B and Tᵀ T = I: the vectors B cut at the borders of the aggregates and made orthonormal
//   there
//
// A node is a stretch of rows, node_ptr[I] … node_ptr[I + 1] - 1: one row, or the displacements of a point.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// The strong neighbours of each node, in compressed rows.
struct StrongGraph {
  std::vector<int64_t> indptr, indices;
  int64_t nodes() const { return static_cast<int64_t>(indptr.size()) - 1; }
};

inline std::vector<int64_t> node_of_row(const std::vector<int64_t>& node_ptr) {
  std::vector<int64_t> node(node_ptr.back());
  for (size_t I = 0; I + 1 < node_ptr.size(); ++I)
    for (int64_t i = node_ptr[I]; i < node_ptr[I + 1]; ++i) node[i] = static_cast<int64_t>(I);
  return node;
}

template <class T, class I>
StrongGraph strong_graph(const Csr<T, I>& A, const std::vector<int64_t>& node_ptr, double theta) {
  const int64_t nodes = static_cast<int64_t>(node_ptr.size()) - 1;
  const std::vector<int64_t> node = node_of_row(node_ptr);
  std::vector<double> own(nodes, 0.0), norm(nodes, 0.0);  // ‖A_II‖; ‖A_IJ‖² for the node I at hand, 0 elsewhere
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      if (const double a = static_cast<double>(A.values[p]); node[A.indices[p]] == node[i]) own[node[i]] += a * a;
  for (double& size : own) size = std::sqrt(size);
  StrongGraph G;
  G.indptr.reserve(nodes + 1);
  G.indptr.push_back(0);
  std::vector<int64_t> met;
  for (int64_t N = 0; N < nodes; ++N) {
    met.clear();
    for (int64_t p = A.indptr[node_ptr[N]]; p < A.indptr[node_ptr[N + 1]]; ++p) {
      const int64_t M = node[A.indices[p]];
      const double a = static_cast<double>(A.values[p]);
      if (M == N || a == 0) continue;
      if (norm[M] == 0) met.push_back(M);
      norm[M] += a * a;
    }
    for (const int64_t M : met) {
      if (norm[M] > theta * theta * own[N] * own[M]) G.indices.push_back(M);
      norm[M] = 0;
    }
    G.indptr.push_back(static_cast<int64_t>(G.indices.size()));
  }
  return G;
}

// Of a matrix with one row a node: the entries that are strong or on the diagonal, and the others, each ascending.
struct SplitEntries {
  std::vector<int64_t> kept, weak;
};

template <class I>
SplitEntries split_entries(const PatternView<I>& A, const StrongGraph& G) {
  SplitEntries split;
  for (int64_t i = 0; i < A.rows; ++i) {
    int64_t g = G.indptr[i];
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
      const bool strong = g < G.indptr[i + 1] && G.indices[g] == A.indices[p];
      (strong || A.indices[p] == i ? split.kept : split.weak).push_back(p);
      g += strong;
    }
  }
  return split;
}

struct Aggregates {
  int64_t count = 0;
  std::vector<int64_t> of_node;  // -1: a node that hangs on nothing, and is left to the smoother
};

inline Aggregates aggregate(const StrongGraph& G) {
  constexpr int64_t alone = -1, open = -2;
  Aggregates found{0, std::vector<int64_t>(G.nodes(), open)};
  std::vector<int64_t>& id = found.of_node;
  const auto neighbours = [&](int64_t i, const auto& f) {
    for (int64_t p = G.indptr[i]; p < G.indptr[i + 1]; ++p) f(G.indices[p]);
  };
  for (int64_t i = 0; i < G.nodes(); ++i) {  // a node and all its neighbours, none of them taken
    if (G.indptr[i] == G.indptr[i + 1]) id[i] = alone;
    bool whole = id[i] == open;
    neighbours(i, [&](int64_t j) { whole = whole && id[j] < 0; });
    if (!whole) continue;
    neighbours(i, [&](int64_t j) { id[j] = found.count; });
    id[i] = found.count++;
  }
  const std::vector<int64_t> first = id;
  for (int64_t i = 0; i < G.nodes(); ++i)  // what is left joins a neighbour's
    if (id[i] == open)
      neighbours(i, [&](int64_t j) {
        if (id[i] == open && first[j] >= 0) id[i] = first[j];
      });
  for (int64_t i = 0; i < G.nodes(); ++i) {  // or makes one of its own
    if (id[i] != open) continue;
    neighbours(i, [&](int64_t j) {
      if (id[j] == open) id[j] = found.count;
    });
    id[i] = found.count++;
  }
  return found;
}

// T in compressed rows, the nodes of the next level, and B there: R, (columns of T, vectors).
struct Tentative {
  std::vector<int64_t> indptr, indices, node_ptr;
  std::vector<double> values, B;
};

// B: (rows, vectors). A vector that depends on the others inside an aggregate gives no column there.
inline Tentative tentative(const Aggregates& groups, const std::vector<int64_t>& node_ptr, const std::vector<double>& B,
                           int64_t vectors) {
  const std::vector<int64_t> node = node_of_row(node_ptr);
  const int64_t rows = static_cast<int64_t>(node.size());
  const auto group_of = [&](int64_t i) { return groups.of_node[node[i]]; };
  std::vector<int64_t> begin(groups.count + 1, 0), members;  // the rows of each aggregate
  for (int64_t i = 0; i < rows; ++i)
    if (group_of(i) >= 0) ++begin[group_of(i) + 1];
  for (int64_t g = 0; g < groups.count; ++g) begin[g + 1] += begin[g];
  members.resize(begin.back());
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  for (int64_t i = 0; i < rows; ++i)
    if (group_of(i) >= 0) members[next[group_of(i)]++] = i;

  Tentative T;
  T.node_ptr = {0};
  std::vector<double> Q(rows * vectors, 0.0);  // orthonormal columns, each row with those of its aggregate
  for (int64_t g = 0; g < groups.count; ++g) {
    const int64_t* rows_of_g = members.data() + begin[g];
    const int64_t size = begin[g + 1] - begin[g];
    const auto dot = [&](const double* u, int64_t a, const double* v, int64_t b) {
      double sum = 0;
      for (int64_t k = 0; k < size; ++k) sum += u[rows_of_g[k] * vectors + a] * v[rows_of_g[k] * vectors + b];
      return sum;
    };
    int64_t kept = 0;
    std::vector<double> R(vectors * vectors, 0.0);  // R[a, c]: the part of vector c along column a
    for (int64_t c = 0; c < vectors; ++c) {
      for (int64_t k = 0; k < size; ++k) Q[rows_of_g[k] * vectors + kept] = B[rows_of_g[k] * vectors + c];
      const double whole = std::sqrt(dot(B.data(), c, B.data(), c));
      for (int twice = 0; twice < 2; ++twice)
        for (int64_t a = 0; a < kept; ++a) {
          const double along = dot(Q.data(), a, Q.data(), kept);
          R[a * vectors + c] += along;
          for (int64_t k = 0; k < size; ++k) Q[rows_of_g[k] * vectors + kept] -= along * Q[rows_of_g[k] * vectors + a];
        }
      const double left = std::sqrt(dot(Q.data(), kept, Q.data(), kept));
      if (!(left > 1e-10 * whole) || kept == size) continue;  // nothing new
      R[kept * vectors + c] = left;
      for (int64_t k = 0; k < size; ++k) Q[rows_of_g[k] * vectors + kept] /= left;
      ++kept;
    }
    T.node_ptr.push_back(T.node_ptr.back() + kept);
    T.B.insert(T.B.end(), R.begin(), R.begin() + kept * vectors);
  }
  T.indptr = {0};
  for (int64_t i = 0; i < rows; ++i) {
    if (const int64_t g = group_of(i); g >= 0)
      for (int64_t c = T.node_ptr[g]; c < T.node_ptr[g + 1]; ++c) {
        T.indices.push_back(c);
        T.values.push_back(Q[i * vectors + (c - T.node_ptr[g])]);
      }
    T.indptr.push_back(static_cast<int64_t>(T.indices.size()));
  }
  return T;
}

// Compiled once: src/cpu/aggregate.cpp.
#define GOSSAMER_STRONG_GRAPH(T, I, ...) \
  __VA_ARGS__ template StrongGraph strong_graph(const Csr<T, I>&, const std::vector<int64_t>&, double);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_STRONG_GRAPH, extern)
#endif

}  // namespace gossamer::kernels
