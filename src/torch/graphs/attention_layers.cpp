// SPDX-License-Identifier: BSD-3-Clause
// The two attention layers:
//   GAT     s = softmax_j leaky_relu(a_dst · W x[i] + a_src · W x[j] + a_edge · W_e e[i, j]),  x'[i] = Σ_j s W x[j]
//   GATv2   s = softmax_j a · leaky_relu(W_r x[i] + W_l x[j] + W_e e[i, j]),                  x'[i] = Σ_j s W_l x[j]
#include "graphs/layers.h"

namespace gossamer::nn {

struct GATConvImpl::Inputs {
  const Edges& edges;
  Tensor x_src, alpha_src, alpha_dst;
  std::optional<Tensor> alpha_edge;
};

GATConvImpl::GATConvImpl(int64_t in_channels, int64_t out, AttentionConvOptions how)
    : AttentionConvImpl(in_channels, out, std::move(how)) {
  lin = register_module("lin", Linear(in_channels, options.heads * out));
  reset_parameters();
}

GATConvImpl::GATConvImpl(std::pair<int64_t, int64_t> in_channels, int64_t out, AttentionConvOptions how)
    : AttentionConvImpl(in_channels.second, out, std::move(how)) {
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

GATConvImpl::Inputs GATConvImpl::inputs(const std::pair<Features, Features>& x, bool same, const Adjacency& adjacency,
                                        const std::optional<Tensor>& edge_attr) {
  const Tensor x_src = by_heads((lin ? lin : lin_src)->forward(x.first));
  const Tensor x_dst = same && lin ? x_src : by_heads((lin ? lin : lin_dst)->forward(x.second));
  const Edges& edges = edges_.of(adjacency, {x_dst.size(0), x_src.size(0)}, loops());
  const auto x_edge = edge_features(adjacency, edge_attr, edges);
  std::optional<Tensor> alpha_edge;
  if (x_edge) alpha_edge = ops::head_scores(*x_edge, att_edge).select(1, 0);
  if (x_dst.is_same(x_src)) {
    const Tensor alpha = ops::head_scores(x_src, at::cat({att_src, att_dst}));
    return {edges, x_src, alpha.select(1, 0), alpha.select(1, 1), alpha_edge};
  }
  return {edges, x_src, ops::head_scores(x_src, att_src).select(1, 0), ops::head_scores(x_dst, att_dst).select(1, 0),
          alpha_edge};
}

Tensor GATConvImpl::forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_attr) {
  const Inputs in = inputs({x, x}, /*same=*/true, adjacency, edge_attr);
  return finish(gat_attention(in.edges.pattern, in.x_src, in.alpha_src, in.alpha_dst, in.alpha_edge, how()), x);
}

Tensor GATConvImpl::forward(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                            const std::optional<Tensor>& edge_attr) {
  const Inputs in = inputs(x, /*same=*/false, adjacency, edge_attr);
  return finish(gat_attention(in.edges.pattern, in.x_src, in.alpha_src, in.alpha_dst, in.alpha_edge, how()), x.second);
}

Weighted GATConvImpl::forward_with_weights(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                                           const std::optional<Tensor>& edge_attr) {
  const Inputs in = inputs(x, /*same=*/false, adjacency, edge_attr);
  const auto [Z, weights] =
      gat_with_weights(in.edges.pattern, in.x_src, in.alpha_src, in.alpha_dst, in.alpha_edge, how());
  return {finish(Z, x.second), as_given(in.edges, weights)};
}

GATv2ConvImpl::GATv2ConvImpl(int64_t in_channels, int64_t out, AttentionConvOptions how)
    : GATv2ConvImpl(std::pair{in_channels, in_channels}, out, std::move(how)) {}

GATv2ConvImpl::GATv2ConvImpl(std::pair<int64_t, int64_t> in_channels, int64_t out, AttentionConvOptions how)
    : AttentionConvImpl(in_channels.second, out, std::move(how)) {
  const int64_t width = options.heads * out;
  lin_l = register_module("lin_l", Linear(in_channels.first, width, options.bias));
  lin_r = register_module("lin_r", options.share_weights ? lin_l : Linear(in_channels.second, width, options.bias));
  att = register_parameter("att", torch::empty({1, options.heads, out}));
  reset_parameters();
}

void GATv2ConvImpl::reset_parameters() {
  for (Linear map : {lin_l, lin_r, lin_edge, res})
    if (map) map->reset_parameters();
  const torch::NoGradGuard off;
  glorot(att);
  if (bias.defined()) bias.zero_();
}

Tensor GATv2ConvImpl::forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_attr) {
  return forward(std::pair{x, x}, adjacency, edge_attr);
}

Tensor GATv2ConvImpl::forward(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                              const std::optional<Tensor>& edge_attr) {
  const Tensor x_src = by_heads(lin_l->forward(x.first)), x_dst = by_heads(lin_r->forward(x.second));
  const Edges& edges = edges_.of(adjacency, {x_dst.size(0), x_src.size(0)}, loops());
  const auto x_edge = edge_features(adjacency, edge_attr, edges);
  return finish(gatv2_attention(edges.pattern, x_src, x_dst, att[0], x_edge, how()), x.second);
}

Weighted GATv2ConvImpl::forward_with_weights(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                                             const std::optional<Tensor>& edge_attr) {
  const Tensor x_src = by_heads(lin_l->forward(x.first)), x_dst = by_heads(lin_r->forward(x.second));
  const Edges& edges = edges_.of(adjacency, {x_dst.size(0), x_src.size(0)}, loops());
  const auto x_edge = edge_features(adjacency, edge_attr, edges);
  const auto [Z, weights] = gatv2_with_weights(edges.pattern, x_src, x_dst, att[0], x_edge, how());
  return {finish(Z, x.second), as_given(edges, weights)};
}

}  // namespace gossamer::nn
