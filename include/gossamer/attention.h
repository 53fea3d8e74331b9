// SPDX-License-Identifier: BSD-3-Clause
// Graph attention, fused: nothing of size edges × heads × width is stored. Row i of the pattern holds the edges that
// point at i, so it is (destinations, sources); an edge may be there several times, and each copy counts.
//
//   const auto edge_index = torch::tensor({{0, 1, 1}, {0, 0, 1}});  // sources above targets
//   const auto x = torch::randn({2, 4, 8}), att = torch::randn({4, 8});  // 2 nodes, 4 heads of 8 features
//   const auto [P, order] = gossamer::graph_pattern(edge_index, {2, 2});
//   const auto Z = gossamer::gatv2_attention(P, x, x, att, {}, {.dropout = 0.6});
#pragma once
#include <concepts>
#include <optional>

#include <gossamer/pattern.h>

namespace gossamer {

namespace ops {

// {indptr, indices, order} of a graph: entry p is edge order[p] = (edge_index[0], edge_index[1]) = (source, target).
// Sorted by target, then source; parallel edges stay apart, in the order they came.
std::tuple<Tensor, Tensor, Tensor> graph(const Tensor& edge_index, at::IntArrayRef shape);

// (nnz, heads): 0 with probability p, else 1 / (1 - p); see kernels/dropout.h. seed: int64, 0-dim, on the
// host.
Tensor dropout_mask(const Tensor& indices, c10::SymInt heads, double p, const Tensor& seed, at::ScalarType dtype,
                    const std::optional<Tensor>& keys = {});

// dropout in training.
Tensor dropout(const Tensor& x, double p, std::optional<int64_t> seed);

// {Z, lse}: gat.h, gatv2.h. Without dropout there is no seed. Only Z is differentiable.
std::tuple<Tensor, Tensor> gat(TensorList pattern, const Tensor& x_src, const Tensor& alpha_src,
                               const Tensor& alpha_dst, const std::optional<Tensor>& alpha_edge, SymIntArrayRef shape,
                               double slope, double dropout, const std::optional<Tensor>& seed,
                               const std::optional<Tensor>& keys = {});
std::tuple<Tensor, Tensor> gatv2(TensorList pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                                 const std::optional<Tensor>& x_edge, SymIntArrayRef shape, double slope,
                                 double dropout, const std::optional<Tensor>& seed,
                                 const std::optional<Tensor>& keys = {});

// Their gradients, in the order of the inputs; without edge features the last one has no rows. Z and lse count as
// functions of the inputs: the derivatives of these ops are those of the whole.
using AttentionGradients = std::tuple<Tensor, Tensor, Tensor, Tensor>;
AttentionGradients gat_backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& alpha_src,
                                const Tensor& alpha_dst, const std::optional<Tensor>& alpha_edge, const Tensor& Z,
                                const Tensor& lse, SymIntArrayRef shape, double slope, double dropout,
                                const std::optional<Tensor>& seed, const std::optional<Tensor>& keys = {});
AttentionGradients gatv2_backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& x_dst,
                                  const Tensor& att, const std::optional<Tensor>& x_edge, const Tensor& Z,
                                  const Tensor& lse, SymIntArrayRef shape, double slope, double dropout,
                                  const std::optional<Tensor>& seed, const std::optional<Tensor>& keys = {});

// The parts of a GAT score, X a for each head: X (n, H, d), a (k, H, d) gives (n, k, H). As one dense product with the
// block-diagonal matrix of the a: elementwise, X would be read and written several times, which takes longer than the
// k H - 1 of k H multiplications by zero.
Tensor head_scores(const Tensor& X, const Tensor& a);

// The seed as the ops above take it, on the device of x: none without dropout, the given one, or one drawn from the
// generator that torch has for that device, where it stays.
std::optional<Tensor> dropout_seed(double dropout, std::optional<int64_t> seed, const Tensor& x);

}  // namespace ops

// The pattern of a graph from PyG's edge_index (2, E), and the edge each entry is: edge features go in as
// features.index_select(0, order). shape: {destinations, sources}.
std::pair<Pattern, Tensor> graph_pattern(const Tensor& edge_index, Shape shape);

// Each element becomes 0 with probability p, else x / (1 - p); x itself unless `training`. The mask depends on the seed
// and the element's place alone (kernels/dropout.h), on every device and for every number of threads, and is drawn a
// register at a time: several times faster than torch's. Without a seed one is drawn from torch's generator.
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true, std::optional<int64_t> seed = {});
template <std::integral T>
  requires(!std::same_as<T, bool>)
Tensor dropout(const Tensor& x, double p, T seed) = delete;  // it would count as `training`: the seed comes after that

struct AttentionOptions {
  double negative_slope = 0.2;
  double dropout = 0;                // of the weights, after the softmax
  std::optional<int64_t> seed = {};  // of the dropout; drawn from torch's generator if not given
  std::optional<Tensor> keys = {};   // (nnz,) int64: the mask of an entry is drawn by its key, not by its place
};

// x_src (n_src, H, d), alpha_src (n_src, H), alpha_dst (n_dst, H), alpha_edge (nnz, H) or none: (n_dst, H, d).
Tensor gat_attention(const Pattern& pattern, const Tensor& x_src, const Tensor& alpha_src, const Tensor& alpha_dst,
                     const std::optional<Tensor>& alpha_edge = {}, const AttentionOptions& options = {});

// x_src (n_src, H, d), x_dst (n_dst, H, d), att (H, d), x_edge (nnz, H, d) or none: (n_dst, H, d).
Tensor gatv2_attention(const Pattern& pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                       const std::optional<Tensor>& x_edge = {}, const AttentionOptions& options = {});

// The same with the weights of the edges, (nnz, H), after dropout: {Z, weights}, both differentiable. Stores what the
// fused form does not.
std::tuple<Tensor, Tensor> gat_with_weights(const Pattern& pattern, const Tensor& x_src, const Tensor& alpha_src,
                                            const Tensor& alpha_dst, const std::optional<Tensor>& alpha_edge = {},
                                            const AttentionOptions& options = {});
std::tuple<Tensor, Tensor> gatv2_with_weights(const Pattern& pattern, const Tensor& x_src, const Tensor& x_dst,
                                              const Tensor& att, const std::optional<Tensor>& x_edge = {},
                                              const AttentionOptions& options = {});

}  // namespace gossamer
