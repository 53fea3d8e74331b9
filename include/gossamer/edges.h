// SPDX-License-Identifier: BSD-3-Clause
// What a graph layer computes on: the pattern of its edges, with self-loops as the layer wants them.
#pragma once
#include <string>
#include <string_view>
#include <tuple>

#include <gossamer/attention.h>
#include <gossamer/sparse_matrix.h>

namespace gossamer {

// none: the edges as they are. replace: self-loops go and every node gets one (GAT). remaining: a node keeps its last
// self-loop, every other node gets one (GCN).
enum class SelfLoops : int64_t { none = 0, replace = 1, remaining = 2 };

namespace ops {

// {indptr, indices, edge}: entry p is edge edge[p] of edge_index (2, E), or the loop that was added to node edge[p] -
// E. shape: {destinations, sources}. Added loops: one for each node that is both.
std::tuple<Tensor, Tensor, Tensor> edges(const Tensor& edge_index, at::IntArrayRef shape, int64_t self_loops);

// Features of the added loops (n, D): a number or a tensor, or a reduction ("mean", "add", "mul", "min", "max") of the
// features of the edges that point at the node, self-loops aside; 0 where there are none.
Tensor loop_features(const Tensor& edge_index, const Tensor& edge_attr, int64_t n, const std::string& reduce);

// {indptr, indices, edge} of a process's rows of a matrix that several share: entry p is entry edge[p] of what is
// given, or the loop that was added to row edge[p] - nnz. The columns are the own rows, in their order, then others;
// each row is sorted by column_keys, the numbers that the columns have for everybody.
std::tuple<Tensor, Tensor, Tensor> distributed_edges(const Tensor& indptr, const Tensor& indices,
                                                     const Tensor& column_keys, int64_t self_loops);

// The number of each entry for everybody, row_key · cols + column_key; copies of an entry, which stand side by side,
// have others.
Tensor entry_keys(const Tensor& indptr, const Tensor& indices, const Tensor& row_keys, const Tensor& column_keys,
                  int64_t cols);

// gcn_norm of a square matrix whose rows are on many processes: see distributed.h for the plan.
Tensor gcn_norm_rows(TensorList plan, at::IntArrayRef counts, const Tensor& weights, std::string_view group);

// A seed that all ranks of the group have: that of the first. Each draws one from torch's generator for x's device.
int64_t shared_seed(const Tensor& x, std::string_view group);

// A number that is another one, as good as surely, if a number in the tensor is. For tensors on the host.
int64_t checksum(const Tensor& integers);

// D^-1/2 A D^-1/2 on the pattern, D the row sums; a row whose sum is not positive counts as 0.
Tensor gcn_norm(TensorList pattern, const Tensor& weights, SymIntArrayRef shape);

}  // namespace ops

// A pattern, the edge that each of its entries is, and the number of edges that were given: entries from there on are
// added loops.
struct Edges {
  Pattern pattern;
  Tensor edge;
  int64_t given;

  // Features of the given edges (E, …) and of the loops (n, …), in the order of the pattern.
  Tensor in_order(const Tensor& features, const Tensor& of_loops) const;
};

Edges edges(const Tensor& edge_index, Shape shape, SelfLoops loops);

}  // namespace gossamer
