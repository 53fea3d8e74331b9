// SPDX-License-Identifier: BSD-3-Clause
// What the layers share: the linear map, the edges they saw last, the part of an attention layer beside the attention.
#include <gossamer/nn.h>

#include <torch/nn/init.h>
#include <torch/types.h>

#include <cmath>

#include "graphs/layers.h"

namespace gossamer::nn {

void glorot(const Tensor& weight) {
  const double bound = std::sqrt(6.0 / static_cast<double>(weight.size(-2) + weight.size(-1)));
  torch::nn::init::uniform_(weight, -bound, bound);
}

int64_t rows_of(const Features& x) {
  return std::visit(
      [](const auto& X) {
        if constexpr (std::is_same_v<std::decay_t<decltype(X)>, SparseMatrix>)
          return X.rows();
        else
          return X.size(0);
      },
      x);
}

Tensor edge_index_of(const Adjacency& adjacency) {
  if (const Tensor* given = std::get_if<Tensor>(&adjacency)) return *given;
  const Pattern& P = std::get<SparseMatrix>(adjacency).pattern();
  return P.keep<Tensor>("edge_index", [&P] { return at::stack({P.indices().to(at::kLong), P.row_indices()}); });
}

std::pair<Tensor, Tensor> as_given(const Edges& edges, const Tensor& weights) {
  const Tensor order = edges.edge.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor pairs = at::stack({edges.pattern.indices().to(at::kLong), edges.pattern.row_indices()});
  return {pairs.index_select(1, order), weights.index_select(0, order)};
}

LinearImpl::LinearImpl(int64_t in, int64_t out, bool with_bias) {
  weight = register_parameter("weight", torch::empty({out, in}));
  bias = register_parameter("bias", with_bias ? torch::empty({out}) : Tensor());
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  glorot(weight);
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(weight.size(1), 1)));
  if (bias.defined()) torch::nn::init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const Features& x) {
  if (const Tensor* dense = std::get_if<Tensor>(&x)) return torch::linear(*dense, weight, bias);
  const Tensor product = std::get<SparseMatrix>(x).matmul(weight.t());
  return bias.defined() ? product + bias : product;
}

const Edges& KeptEdges::of(const Adjacency& adjacency, Shape shape, SelfLoops loops) {
  const Tensor edge_index = edge_index_of(adjacency);
  const int64_t version = edge_index.is_inference() ? -1 : static_cast<int64_t>(edge_index._version());
  const bool same = seen_.defined() && seen_.is_same(edge_index) && version >= 0 && version == version_;
  if (!edges_ || !same || shape != shape_) {
    edges_ = edges(edge_index, shape, loops);
    seen_ = edge_index;
    version_ = version;
    shape_ = shape;
  }
  return *edges_;
}

GCNConvImpl::GCNConvImpl(int64_t in_channels, int64_t out_channels, GCNOptions how) : options(how) {
  if (!options.add_self_loops) options.add_self_loops = options.normalize;
  TORCH_CHECK_VALUE(options.normalize || !*options.add_self_loops,
                    "GCNConv: add_self_loops = true goes with normalize = true");
  lin = register_module("lin", Linear(in_channels, out_channels));
  bias = register_parameter("bias", options.bias ? torch::empty({out_channels}) : Tensor());
  reset_parameters();
}

void GCNConvImpl::reset_parameters() {
  lin->reset_parameters();
  if (bias.defined()) torch::nn::init::zeros_(bias);
  kept_.reset();
}

SparseMatrix GCNConvImpl::matrix(int64_t n, const Adjacency& adjacency, std::optional<Tensor> edge_weight) {
  const auto* A = std::get_if<SparseMatrix>(&adjacency);
  if (!edge_weight && A) edge_weight = A->values();
  const Edges& edges = edges_.of(adjacency, {n, n}, *options.add_self_loops ? SelfLoops::remaining : SelfLoops::none);
  const Tensor given = edge_weight ? *edge_weight : at::ones({edges.given}, lin->weight.options().requires_grad(false));
  TORCH_CHECK_VALUE(given.dim() == 1 && given.size(0) == edges.given, "GCNConv: edge_weight has ", given.numel(),
                    " numbers for ", edges.given, " edges");
  const Tensor added = at::full({n}, options.improved ? 2.0 : 1.0, given.options().requires_grad(false));
  const Tensor weights = edges.in_order(given, added);
  const Pattern& P = edges.pattern;
  return {P, options.normalize ? ops::gcn_norm(P.tensors(), weights, P.sym_shape()) : weights};
}

Tensor GCNConvImpl::forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_weight) {
  const SparseMatrix A = kept_ ? *kept_ : matrix(rows_of(x), adjacency, edge_weight);
  if (options.cached) kept_ = A;
  const Tensor out = A.matmul(lin->forward(x));
  return bias.defined() ? out + bias : out;
}

AttentionConvImpl::AttentionConvImpl(int64_t in_dst, int64_t out, AttentionConvOptions how)
    : options(std::move(how)), out_channels(out) {
  const int64_t total = options.concat ? options.heads * out : out;
  if (options.edge_dim) lin_edge = register_module("lin_edge", Linear(*options.edge_dim, options.heads * out));
  if (options.residual) res = register_module("res", Linear(in_dst, total));
  bias = register_parameter("bias", options.bias ? torch::zeros({total}) : Tensor());
}

std::optional<Tensor> AttentionConvImpl::edge_features(const Adjacency& adjacency, std::optional<Tensor> edge_attr,
                                                       const Edges& edges) {
  const auto* A = std::get_if<SparseMatrix>(&adjacency);
  if (!edge_attr && A) edge_attr = A->values();
  if (!lin_edge || !edge_attr) return std::nullopt;
  const Tensor columns = edge_attr->dim() == 1 ? edge_attr->unsqueeze(1) : *edge_attr;
  TORCH_CHECK_VALUE(columns.dim() == 2 && columns.size(0) == edges.given && columns.size(1) == *options.edge_dim,
                    name(), ": edge_attr has shape ", edge_attr->sizes(), ", not (", edges.given, ", ",
                    *options.edge_dim, ")");
  const int64_t n = std::min(edges.pattern.rows(), edges.pattern.cols());
  Tensor loops = columns.slice(0, 0, 0);
  if (options.add_self_loops) {
    const auto* reduce = std::get_if<std::string>(&options.fill_value);
    loops = reduce ? ops::loop_features(edge_index_of(adjacency), columns, n, *reduce)
                   : at::full({n, columns.size(1)}, std::get<double>(options.fill_value), columns.options());
  }
  return by_heads(lin_edge->forward(edges.in_order(columns, loops)));
}

AttentionOptions AttentionConvImpl::how() const {
  return {options.negative_slope, is_training() ? options.dropout : 0.0, {}};
}

Tensor AttentionConvImpl::finish(const Tensor& Z, const Features& x_dst) {
  Tensor out = options.concat ? Z.flatten(1) : Z.mean(1);
  if (res) out = out + res->forward(x_dst);
  return bias.defined() ? out + bias : out;
}

}  // namespace gossamer::nn
