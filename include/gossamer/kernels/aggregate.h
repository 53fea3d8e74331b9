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
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// Rows of nodes: `ptr` has nodes + 1 of them. If each node is one row, no table of the rows' nodes is made.
struct NodeRows {
  std::vector<int64_t> ptr, of_row;

  explicit NodeRows(std::vector<int64_t> first) : ptr(std::move(first)) {
    if (nodes() == rows()) return;
    of_row.resize(rows());
    for (int64_t N = 0; N < nodes(); ++N)
      for (int64_t i = ptr[N]; i < ptr[N + 1]; ++i) of_row[i] = N;
  }
  int64_t nodes() const { return static_cast<int64_t>(ptr.size()) - 1; }
  int64_t rows() const { return ptr.back(); }
  int64_t node(int64_t i) const { return of_row.empty() ? i : of_row[i]; }
};

// The strong neighbours of each node, in compressed rows.
template <class I>
struct StrongGraph {
  std::vector<I> indptr, indices;
  int64_t nodes() const { return static_cast<int64_t>(indptr.size()) - 1; }
};

template <class T, class I>
StrongGraph<I> strong_graph(const Csr<T, I>& A, const NodeRows& rows, double theta) {
  const int64_t nodes = rows.nodes();
  std::vector<double> own(nodes, 0.0), norm(nodes, 0.0);  // ‖A_II‖; ‖A_IJ‖² for the node I at hand, 0 elsewhere
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      if (const double a = static_cast<double>(A.values[p]); rows.node(A.indices[p]) == rows.node(i))
        own[rows.node(i)] += a * a;
  for (double& size : own) size = theta * std::sqrt(size);
  StrongGraph<I> G;
  G.indptr.reserve(nodes + 1);
  G.indptr.push_back(0);
  G.indices.reserve(A.nnz);
  std::vector<int64_t> met;
  for (int64_t N = 0; N < nodes; ++N) {
    met.clear();
    for (int64_t p = A.indptr[rows.ptr[N]]; p < A.indptr[rows.ptr[N + 1]]; ++p) {
      const int64_t M = rows.node(A.indices[p]);
      const double a = static_cast<double>(A.values[p]);
      if (M == N || a == 0) continue;
      if (norm[M] == 0) met.push_back(M);
      norm[M] += a * a;
    }
    for (const int64_t M : met) {
      if (norm[M] > own[N] * own[M]) G.indices.push_back(static_cast<I>(M));
      norm[M] = 0;
    }
    G.indptr.push_back(static_cast<I>(G.indices.size()));
  }
  return G;
}

// Of a matrix with one row a node and a whole diagonal: the pattern without the weak entries.
template <class I>
StrongGraph<I> without_weak(const PatternView<I>& A, const StrongGraph<I>& G) {
  StrongGraph<I> kept;
  kept.indptr.reserve(A.rows + 1);
  kept.indptr.push_back(0);
  kept.indices.reserve(G.indices.size() + A.rows);
  for (int64_t i = 0; i < A.rows; ++i) {
    for (int64_t p = A.indptr[i], g = G.indptr[i]; p < A.indptr[i + 1]; ++p) {
      const bool strong = g < G.indptr[i + 1] && G.indices[g] == A.indices[p];
      if (strong || A.indices[p] == i) kept.indices.push_back(A.indices[p]);
      g += strong;
    }
    kept.indptr.push_back(static_cast<I>(kept.indices.size()));
  }
  return kept;
}

template <class I>
struct Aggregates {
  int64_t count = 0;
  std::vector<I> of_node;  // -1: a node that hangs on nothing, and is left to the smoother
};

template <class I>
Aggregates<I> aggregate(const StrongGraph<I>& G) {
  constexpr I alone = -1, open = -2;
  Aggregates<I> found{0, std::vector<I>(G.nodes(), open)};
  std::vector<I>& id = found.of_node;
  const auto neighbours = [&](int64_t i, const auto& f) {
    for (int64_t p = G.indptr[i]; p < G.indptr[i + 1]; ++p) f(G.indices[p]);
  };
  for (int64_t i = 0; i < G.nodes(); ++i) {  // a node and all its neighbours, none of them taken
    if (G.indptr[i] == G.indptr[i + 1]) id[i] = alone;
    bool whole = id[i] == open;
    neighbours(i, [&](int64_t j) { whole = whole && id[j] < 0; });
    if (!whole) continue;
    neighbours(i, [&](int64_t j) { id[j] = static_cast<I>(found.count); });
    id[i] = static_cast<I>(found.count++);
  }
  const std::vector<I> first = id;
  for (int64_t i = 0; i < G.nodes(); ++i)  // what is left joins a neighbour's
    if (id[i] == open)
      neighbours(i, [&](int64_t j) {
        if (id[i] == open && first[j] >= 0) id[i] = first[j];
      });
  for (int64_t i = 0; i < G.nodes(); ++i) {  // or makes one of its own
    if (id[i] != open) continue;
    neighbours(i, [&](int64_t j) {
      if (id[j] == open) id[j] = static_cast<I>(found.count);
    });
    id[i] = static_cast<I>(found.count++);
  }
  return found;
}

// T in compressed rows, the first rows of the nodes of the next level, and B there: R, (columns of T, vectors).
template <class I>
struct Tentative {
  std::vector<I> indptr, indices;
  std::vector<double> values, B;
  std::vector<int64_t> node_ptr;
};

// The vectors of one aggregate, made orthonormal one after the other, twice for the sake of rounding. Q: (rows,
// vectors), columns of the aggregate's rows; R: (vectors, vectors). A vector that depends on those before it gives no
// column; the number of columns.
inline int64_t orthonormalise(const double* B, int64_t vectors, const int64_t* members, int64_t size, double* Q,
                              double* R) {
  const auto dot = [&](const double* u, int64_t a, const double* v, int64_t b) {
    double sum = 0;
    for (int64_t k = 0; k < size; ++k) sum += u[members[k] * vectors + a] * v[members[k] * vectors + b];
    return sum;
  };
  std::fill(R, R + vectors * vectors, 0.0);
  int64_t kept = 0;
  for (int64_t c = 0; c < vectors && kept < size; ++c) {
    for (int64_t k = 0; k < size; ++k) Q[members[k] * vectors + kept] = B[members[k] * vectors + c];
    const double whole = std::sqrt(dot(B, c, B, c));
    for (int twice = 0; twice < 2; ++twice)
      for (int64_t a = 0; a < kept; ++a) {
        const double along = dot(Q, a, Q, kept);
        R[a * vectors + c] += along;
        for (int64_t k = 0; k < size; ++k) Q[members[k] * vectors + kept] -= along * Q[members[k] * vectors + a];
      }
    const double left = std::sqrt(dot(Q, kept, Q, kept));
    if (!(left > 1e-10 * whole)) continue;
    R[kept * vectors + c] = left;
    for (int64_t k = 0; k < size; ++k) Q[members[k] * vectors + kept] /= left;
    ++kept;
  }
  return kept;
}

// B: (rows, vectors).
template <class I>
Tentative<I> tentative(const Aggregates<I>& groups, const NodeRows& nodes, const std::vector<double>& B,
                       int64_t vectors) {
  const int64_t rows = nodes.rows();
  const auto group_of = [&](int64_t i) -> int64_t { return groups.of_node[nodes.node(i)]; };
  std::vector<int64_t> begin(groups.count + 2, 0);  // the rows of each aggregate: begin[g] … begin[g + 1] - 1
  for (int64_t i = 0; i < rows; ++i)
    if (group_of(i) >= 0) ++begin[group_of(i) + 2];
  for (int64_t g = 0; g < groups.count; ++g) begin[g + 2] += begin[g + 1];
  std::vector<int64_t> members(begin.back());
  for (int64_t i = 0; i < rows; ++i)
    if (group_of(i) >= 0) members[begin[group_of(i) + 1]++] = i;

  Tentative<I> T;
  T.node_ptr.reserve(groups.count + 1);
  T.node_ptr.push_back(0);
  std::vector<double> Q(rows * vectors), R(vectors * vectors);
  for (int64_t g = 0; g < groups.count; ++g) {
    const int64_t kept =
        orthonormalise(B.data(), vectors, members.data() + begin[g], begin[g + 1] - begin[g], Q.data(), R.data());
    T.node_ptr.push_back(T.node_ptr.back() + kept);
    T.B.insert(T.B.end(), R.begin(), R.begin() + kept * vectors);
  }
  T.indptr.reserve(rows + 1);
  T.indptr.push_back(0);
  T.indices.reserve(rows * vectors), T.values.reserve(rows * vectors);
  for (int64_t i = 0; i < rows; ++i) {
    if (const int64_t g = group_of(i); g >= 0)
      for (int64_t c = T.node_ptr[g]; c < T.node_ptr[g + 1]; ++c) {
        T.indices.push_back(static_cast<I>(c));
        T.values.push_back(Q[i * vectors + (c - T.node_ptr[g])]);
      }
    T.indptr.push_back(static_cast<I>(T.indices.size()));
  }
  return T;
}

// The smoothing of T, S = I - w D⁻¹ A_F, on the pattern of A_F, which is A's without some entries; these are added to
// the diagonal. values: those of S. The largest row sum of |D⁻¹ A_F|, which no eigenvalue exceeds.
template <class T, class I>
double smoothing(const Csr<T, I>& A, const PatternView<I>& kept, T w, T* values) {
  double bound = 0;
  for (int64_t i = 0; i < A.rows; ++i) {
    T diagonal = 0, lumped = 0;
    int64_t q = kept.indptr[i], at_diagonal = q;
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
      const T a = A.values[p];
      if (A.indices[p] == i) diagonal = a, at_diagonal = q;
      if (q < kept.indptr[i + 1] && kept.indices[q] == A.indices[p])
        values[q++] = a;
      else
        lumped += a;
    }
    values[at_diagonal] += lumped;
    double sum = 0;
    for (int64_t k = kept.indptr[i]; k < q; ++k) {
      sum += std::abs(static_cast<double>(values[k]));
      values[k] *= -w / diagonal;
    }
    values[at_diagonal] += 1;
    bound = std::max(bound, sum / std::abs(static_cast<double>(diagonal)));
  }
  return bound;
}

// Compiled once: src/cpu/aggregate.cpp.
#define GOSSAMER_AGGREGATE(T, I, ...)                                                          \
  __VA_ARGS__ template StrongGraph<I> strong_graph(const Csr<T, I>&, const NodeRows&, double); \
  __VA_ARGS__ template double smoothing(const Csr<T, I>&, const PatternView<I>&, T, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_AGGREGATE, extern)
#endif

}  // namespace gossamer::kernels
