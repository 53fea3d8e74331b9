// SPDX-License-Identifier: BSD-3-Clause
// The two attention layers:
//   GAT     s = softmax_j leaky_relu(a_dst · W x[i] + a_src · W x[j] + a_edge · W_e e[i, j]),  x'[i] = Σ_j s W x[j]
//   GATv2   s = softmax_j a · leaky_relu(W_r x[i] + W_l x[j] + W_e e[i, j]),                  x'[i] = Σ_j s W_l x[j]
#include "graphs/layers.h"

namespace gossamer::nn {

struct GATConvImpl::Inputs {
  Edges edges;
  Tensor x_src, alpha_src, alpha_dst;
  std::optional<Tensor> alpha_edge;
};

GATConvImpl::GATConvImpl(int64_t in_channels, int64_t out, AttentionConvOptions given)
    : AttentionConvImpl("GATConv", in_channels, out, std::move(given)) {
  lin = register_module("lin", Linear(in_channels, options.heads * out));
  reset_parameters();
}

GATConvImpl::GATConvImpl(std::pair<int64_t, int64_t> in_channels, int64_t out, AttentionConvOptions given)
    : AttentionConvImpl("GATConv", in_channels.second, out, std::move(given)) {
  lin_src = register_module("lin_src", Linear(in_channels.first, options.heads * out));
  lin_dst = register_module("lin_dst", Linear(in_channels.second, options.heads * out));
  reset_parameters();
}

void GATConvImpl::reset_parameters() {
  for (Linear map : {lin, lin_src, lin_dst, lin_edge, res})
    if (map) map->reset_parameters();
  const auto vector = [this](const char* name, Tensor& att) {
    const torch::NoGradGuard off;
    if (!att.defined()) att = register_parameter(name, at::empty({1, options.heads, out_channels}));
    glorot(att);
  };
  vector("att_src", att_src);
  vector("att_dst", att_dst);
  if (options.edge_dim) vector("att_edge", att_edge);
  const torch::NoGradGuard off;
  if (bias.defined()) bias.zero_();
}

namespace {

// a · W x, a number a head, as x (Wᵀ a), which is as narrow as the heads: for a map whose W x nobody else wants.
Tensor scores_of(const Linear& map, const Features& x, const Tensor& att) {
  const Tensor by_heads = map->weight.t().unflatten(1, att.sizes().slice(1));
  const Tensor folded = ops::head_scores(by_heads, att).select(1, 0);  // (in, heads)
  return mapped(x, folded.t().contiguous());  // one row a head, for the gradient's sake: see head_scores
}

}  // namespace

GATConvImpl::Inputs GATConvImpl::inputs(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                                        const std::optional<Tensor>& edge_attr) {
  const Tensor x_src = of_sources(lin ? lin : lin_src, x.first, adjacency);
  Tensor alpha_src, alpha_dst;
  if (lin && same(x.first, x.second)) {
    const Tensor alpha = ops::head_scores(x_src, at::cat({att_src, att_dst}));
    alpha_src = alpha.select(1, 0), alpha_dst = alpha.select(1, 1).narrow(0, 0, rows_of(x.second));
  } else {
    alpha_src = ops::head_scores(x_src, att_src).select(1, 0);
    alpha_dst = scores_of(lin ? lin : lin_dst, x.second, att_dst);
  }
  const Edges edges = this->edges(adjacency, {alpha_dst.size(0), x_src.size(0)});
  const auto x_edge = edge_features(adjacency, edge_attr, edges);
  std::optional<Tensor> alpha_edge;
  if (x_edge) alpha_edge = ops::head_scores(*x_edge, att_edge).select(1, 0);
  return {edges, x_src, alpha_src, alpha_dst, alpha_edge};
}

Tensor GATConvImpl::forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_attr) {
  return forward(std::pair{x, x}, adjacency, edge_attr);
}

Tensor GATConvImpl::forward(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                            const std::optional<Tensor>& edge_attr) {
  const Inputs in = inputs(x, adjacency, edge_attr);
  const Tensor Z = gat_attention(in.edges.pattern, in.x_src, in.alpha_src, in.alpha_dst, in.alpha_edge,
                                 attention_options(adjacency, in.edges, in.x_src));
  return finish(Z, x.second);
}

Weighted GATConvImpl::forward_with_weights(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                                           const std::optional<Tensor>& edge_attr) {
  const Inputs in = inputs(x, adjacency, edge_attr);
  const auto [Z, weights] = gat_with_weights(in.edges.pattern, in.x_src, in.alpha_src, in.alpha_dst, in.alpha_edge,
                                             attention_options(adjacency, in.edges, in.x_src));
  return {finish(Z, x.second), as_given(adjacency, in.edges, weights)};
}

struct GATv2ConvImpl::Inputs {
  Edges edges;
  Tensor x_src, x_dst, att;
  std::optional<Tensor> x_edge;
};

GATv2ConvImpl::GATv2ConvImpl(int64_t in_channels, int64_t out, AttentionConvOptions given)
    : GATv2ConvImpl(std::pair{in_channels, in_channels}, out, std::move(given)) {}

GATv2ConvImpl::GATv2ConvImpl(std::pair<int64_t, int64_t> in_channels, int64_t out, AttentionConvOptions given)
    : AttentionConvImpl("GATv2Conv", in_channels.second, out, std::move(given)) {
  const int64_t width = options.heads * out;
  lin_l = register_module("lin_l", Linear(in_channels.first, width, options.bias));
  if (options.share_weights)
    lin_r = lin_l;  // not registered again: an optimiser would take every step twice
  else
    lin_r = register_module("lin_r", Linear(in_channels.second, width, options.bias));
  att = register_parameter("att", torch::empty({1, options.heads, out}));
  reset_parameters();
}

void GATv2ConvImpl::reset_parameters() {
  for (Linear map : {lin_l, options.share_weights ? Linear(nullptr) : lin_r, lin_edge, res})
    if (map) map->reset_parameters();
  const torch::NoGradGuard off;
  glorot(att);
  if (bias.defined()) bias.zero_();
}

GATv2ConvImpl::Inputs GATv2ConvImpl::inputs(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                                            const std::optional<Tensor>& edge_attr) {
  TORCH_CHECK_VALUE(options.edge_dim || !edge_attr, "GATv2Conv: edge_attr is given, but the layer has no edge_dim");
  const Tensor x_src = of_sources(lin_l, x.first, adjacency);
  const bool shared = options.share_weights && same(x.first, x.second);
  // Own nodes stand before those of other processes.
  const Tensor x_dst = shared ? x_src.narrow(0, 0, rows_of(x.second)) : by_heads(lin_r->forward(x.second));
  const Edges edges = this->edges(adjacency, {x_dst.size(0), x_src.size(0)});
  return {edges, x_src, x_dst, att[0], edge_features(adjacency, edge_attr, edges)};
}

Tensor GATv2ConvImpl::forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_attr) {
  return forward(std::pair{x, x}, adjacency, edge_attr);
}

Tensor GATv2ConvImpl::forward(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                              const std::optional<Tensor>& edge_attr) {
  const Inputs in = inputs(x, adjacency, edge_attr);
  return finish(gatv2_attention(in.edges.pattern, in.x_src, in.x_dst, in.att, in.x_edge,
                                attention_options(adjacency, in.edges, in.x_src)),
                x.second);
}

Weighted GATv2ConvImpl::forward_with_weights(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                                             const std::optional<Tensor>& edge_attr) {
  const Inputs in = inputs(x, adjacency, edge_attr);
  const auto [Z, weights] = gatv2_with_weights(in.edges.pattern, in.x_src, in.x_dst, in.att, in.x_edge,
                                               attention_options(adjacency, in.edges, in.x_src));
  return {finish(Z, x.second), as_given(adjacency, in.edges, weights)};
}

}  // namespace gossamer::nn
