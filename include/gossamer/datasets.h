// SPDX-License-Identifier: BSD-3-Clause
// Graphs with features, classes and a split of their nodes: from a folder of text files, or made by a seed.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gossamer/sparse_matrix.h>

namespace gossamer::datasets {

struct Graph {
  SparseMatrix adjacency;                // (N, N), ones: row i holds the edges that point at i
  std::variant<SparseMatrix, Tensor> x;  // (N, F) features: sparse ones stay sparse
  Tensor y;                              // (N,) int64 classes; -1 where the data give none
  Tensor train_mask, val_mask, test_mask;
  int64_t num_classes = 0;

  int64_t num_nodes() const { return adjacency.rows(); }
  int64_t num_features() const;
  Tensor dense_x() const;
  Graph to(at::Device device) const;
  std::string repr() const;
};

std::ostream& operator<<(std::ostream& out, const Graph& graph);  // repr()

// A graph of parts that fit together, or an error that begins with `where`. Splits are lists of nodes.
Graph assemble(const std::string& where, const SparseMatrix& adjacency, const std::variant<SparseMatrix, Tensor>& x,
               const Tensor& y, const Tensor& train, const Tensor& val, const Tensor& test);

// The folder holds adjacency.mtx, features.mtx (MatrixMarket), labels.txt (a class a line), train.txt, val.txt and
// test.txt (a node a line). Throws with the name of the file and the line of what is wrong. See docs/datasets.md.
Graph load(const std::string& folder);

// Synthetic graphs need no files. Without a seed, torch's generator gives one. x is a class's mean, drawn from the
// normal distribution, plus `noise` times normal numbers. 20 nodes of a class train, 30 validate, the rest test.
struct Features {
  int64_t count = 16;
  double noise = 1;
};
Graph stochastic_block_model(const std::vector<int64_t>& sizes = {100, 100, 100, 100}, double p_in = 0.1,
                             double p_out = 0.01, Features features = {}, std::optional<int64_t> seed = {});
Graph power_law(int64_t num_nodes = 1000, int64_t num_edges = 5000, double exponent = 2.5, int64_t num_classes = 4,
                double homophily = 0.8, Features features = {}, std::optional<int64_t> seed = {});

}  // namespace gossamer::datasets
