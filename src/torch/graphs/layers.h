// SPDX-License-Identifier: BSD-3-Clause
// Small things the layers share.
#pragma once
#include <gossamer/nn.h>

#include <functional>

namespace gossamer::nn {

void glorot(const Tensor& weight);  // uniform in ±√(6 / (fan_in + fan_out)), the last two sizes
Tensor mapped(const Features& x, const Tensor& weight, const Tensor& bias = {});  // x Wᵀ + b, sparse x stay sparse
int64_t rows_of(const Features& x);
bool same(const Features& x, const Features& y);  // the same object, not equal numbers

Tensor edge_index_of(const Adjacency& adjacency);

// The edges of a graph, made once: kept with its pattern, or for as long as the edge_index lives and is not written to.
// An error names the layer.
Edges edges_of(const std::string& layer, const Adjacency& adjacency, Shape shape, SelfLoops loops);

// The same of own rows, where processes share the graph; with a matrix on that pattern, for products; the number that
// dropout draws each entry by; an edge_index in the original numbers; and what `make` gives, a row for each own column,
// one process's mistake being raised in all. src/torch/graphs/shared_edges.cpp.
Edges shared_edges(const std::string& layer, const DistributedMatrix& A, SelfLoops loops);
DistributedMatrix shared_matrix(const std::string& layer, const DistributedMatrix& A, SelfLoops loops);
Tensor entry_keys(const DistributedMatrix& A, const Pattern& P);
Tensor original_pairs(const DistributedMatrix& A, const Tensor& pairs);
Tensor of_own_rows(const DistributedMatrix& A, const std::function<Tensor()>& make);

// edge_index and weights in the order of the given edges, added loops at the end.
std::pair<Tensor, Tensor> as_given(const Adjacency& adjacency, const Edges& edges, const Tensor& weights);

}  // namespace gossamer::nn
