// SPDX-License-Identifier: BSD-3-Clause
// Golden vectors: every quantity of a graph attention network on a given graph, for people who build accelerators.
#pragma once
#include <gossamer/datasets.h>
#include <gossamer/equations.h>
#include <gossamer/io.h>

namespace gossamer {

namespace equations {

struct GoldenOptions {
  int64_t version = 1;                // 1: GAT, 2: GATv2
  std::vector<int64_t> hidden = {8};  // d of each hidden layer
  std::vector<int64_t> heads = {2};   // K of each layer, the last one included; one number is for all
  int64_t seed = 0;                   // of the parameters: uniform in ±√(6 / (F + d)), as Glorot and Bengio
  bool self_loops = true;             // an edge from every node to itself, as the layers have it
  at::ScalarType dtype = at::kDouble;
};

// "indptr", "indices", "H0", "y", "train_mask", then what equations::network gives. docs/equations.md has the table.
Named golden(const datasets::Graph& graph, const GoldenOptions& options = {});

}  // namespace equations

using equations::golden;
using equations::GoldenOptions;

}  // namespace gossamer
