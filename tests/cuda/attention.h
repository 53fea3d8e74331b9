// SPDX-License-Identifier: BSD-3-Clause
// Problems of graph attention for the kernel tests, and their solution by plain loops over edges in double.
#pragma once
#include <cmath>

#include <gossamer/kernels/dropout.h>
#include <gossamer/kernels/transpose.h>
#include "matrix.h"

namespace gossamer::test {

using Reals = std::vector<double>;

// Rows of columns, in any order and as often as they come, and their transpose.
template <class I>
struct Graph {
  int64_t rows, cols;
  std::vector<I> indptr{0}, indices, t_indptr, t_indices, perm;

  Graph(int64_t n, const std::vector<std::vector<int>>& of_row) : rows(static_cast<int64_t>(of_row.size())), cols(n) {
    for (const auto& row : of_row) {
      indices.insert(indices.end(), row.begin(), row.end());
      indptr.push_back(static_cast<I>(indices.size()));
    }
    t_indptr.resize(cols + 1), t_indices.resize(nnz()), perm.resize(nnz());
    kernels::transpose(view(), t_indptr.data(), t_indices.data(), perm.data());
  }
  int64_t nnz() const { return static_cast<int64_t>(indices.size()); }
  PatternView<I> view() const { return {rows, cols, nnz(), indptr.data(), indices.data()}; }
  PatternView<I> transpose() const { return {cols, rows, nnz(), t_indptr.data(), t_indices.data()}; }
};

// An empty row, a row of one entry, parallel edges, a row longer than a warp or two; nothing leaves source 5.
template <class I>
Graph<I> small_graph(int longest) {
  std::vector<int> many(longest);
  for (int k = 0; k < longest; ++k) many[k] = k * k % 5;
  return {6, {{0, 2, 4}, {}, {3}, {1, 1, 1, 2}, many, {0, 1, 2}}};
}

struct Shape {
  int64_t heads, width;
  bool second, edges;  // GATv2; with edge terms
  Dropout dropout = {};
  friend std::ostream& operator<<(std::ostream& out, const Shape& s) {
    return out << (s.second ? "v2" : "v1") << ", heads " << s.heads << ", width " << s.width << ", edges " << s.edges
               << ", dropout " << s.dropout.any();
  }
};

// Inputs: x_src; then alpha_src, alpha_dst, alpha_edge or x_dst, att, x_edge.
template <class T, class I>
struct Problem {
  Graph<I> A;
  Shape shape;
  std::vector<std::vector<T>> in;
  std::vector<T> G;
  Sum<T> slope = static_cast<Sum<T>>(0.2);

  Problem(const Graph<I>& graph, const Shape& s, unsigned seed = 1) : A(graph), shape(s) {
    std::mt19937 random(seed);
    const auto values = [&](int64_t n) {
      std::vector<T> v(n);
      for (T& x : v) x = static_cast<T>(std::uniform_real_distribution<float>(-1, 1)(random));
      return v;
    };
    const int64_t columns = s.heads * s.width, a = A.cols * s.heads, b = A.rows * s.heads, c = A.nnz() * s.heads;
    in = {values(A.cols * columns), values(s.second ? A.rows * columns : a), values(s.second ? columns : b),
          values(s.edges ? s.second ? A.nnz() * columns : c : 0)};
    G = values(A.rows * columns);
  }
  template <class In>
  In view() const {
    return {A.view(),     shape.heads,  shape.width, in[0].data(), in[1].data(),
            in[2].data(), edge_terms(), slope,       shape.dropout};
  }
  const T* edge_terms() const { return shape.edges ? in[3].data() : nullptr; }
};

// {Z, lse, gradients of the inputs} by the chain rule, edge by edge.
template <class T, class I>
std::vector<Reals> plain(const Problem<T, I>& problem) {
  const int64_t heads = problem.shape.heads, width = problem.shape.width;
  const bool second = problem.shape.second, edges = problem.shape.edges;
  const Dropout& dropout = problem.shape.dropout;
  const Graph<I>& A = problem.A;
  const double slope = problem.slope;
  const auto slope_at = [&](double t) { return t > 0 ? 1 : slope; };
  std::vector<Reals> x, d;
  for (const auto& input : problem.in) x.emplace_back(input.begin(), input.end()), d.emplace_back(input.size());
  Reals Z(problem.G.size()), lse(A.rows * heads);
  for (int64_t row = 0; row < A.rows * heads; ++row) {
    const int64_t i = row / heads, h = row % heads, begin = A.indptr[i], end = A.indptr[i + 1];
    // Where the three summands of t stand in their arrays, for column c of the second kind.
    const auto src = [&](int64_t p, int64_t c) { return (A.indices[p] * heads + h) * (second ? width : 1) + c; };
    const auto dst = [&](int64_t c) { return second ? row * width + c : row; };
    const auto edge = [&](int64_t p, int64_t c) { return (p * heads + h) * (second ? width : 1) + c; };
    const auto term = [&](int64_t p, int64_t c) {
      return x[second ? 0 : 1][src(p, c)] + x[second ? 1 : 2][dst(c)] + (edges ? x[3][edge(p, c)] : 0);
    };
    const int64_t terms = second ? width : 1;
    const auto times = [&](int64_t c) { return second ? x[2][h * width + c] : 1; };
    Reals s(end - begin), mP(end - begin);
    double sum = 0, mean = 0;
    for (int64_t p = begin; p < end; ++p) {
      double e = 0;
      for (int64_t c = 0; c < terms; ++c) e += times(c) * slope_at(term(p, c)) * term(p, c);
      sum += s[p - begin] = std::exp(e);
    }
    lse[row] = begin == end ? 0 : std::log(sum);
    for (int64_t p = begin; p < end; ++p) {
      const double m = dropout.any() ? dropout.factor<double>(dropout.first(p, heads) + h) : 1,
                   ms = m * (s[p - begin] /= sum);
      for (int64_t c = 0; c < width; ++c) {
        const int64_t at = (A.indices[p] * heads + h) * width + c;
        const double g = problem.G[row * width + c];
        Z[row * width + c] += ms * x[0][at];
        mP[p - begin] += m * g * x[0][at];
        d[0][at] += ms * g;
      }
      mean += s[p - begin] * mP[p - begin];
    }
    for (int64_t p = begin; p < end; ++p)
      for (int64_t c = 0; c < terms; ++c) {
        const double t = term(p, c), de = s[p - begin] * (mP[p - begin] - mean), dt = de * times(c) * slope_at(t);
        d[second ? 0 : 1][src(p, c)] += dt;
        d[second ? 1 : 2][dst(c)] += dt;
        if (second) d[2][h * width + c] += de * slope_at(t) * t;
        if (edges) d[3][edge(p, c)] = dt;
      }
  }
  d.insert(d.begin(), {Z, lse});
  return d;
}

}  // namespace gossamer::test
