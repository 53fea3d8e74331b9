// SPDX-License-Identifier: BSD-3-Clause
// What the layers share: the linear map, and the part of an attention layer beside the attention. And the layer of GCN.
#include <gossamer/nn.h>

#include <torch/nn/init.h>
#include <torch/types.h>

#include <cmath>

#include "core/csr.h"
#include "graphs/degrees.h"
#include "graphs/layers.h"

namespace gossamer::nn {
namespace {

// The weights that a matrix brings along; of another graph there are none.
std::optional<Tensor> values_of(const Adjacency& adjacency) {
  if (const auto* A = std::get_if<SparseMatrix>(&adjacency)) return A->values();
  if (const auto* A = std::get_if<DistributedMatrix>(&adjacency)) return A->values();
  return std::nullopt;
}

// As ops::gcn_norm_rows.
DistributedMatrix gcn_norm(const DistributedMatrix& A) {
  const Pattern P = A.pattern();
  return A.with_values(
      symmetric_norm(P.tensors(), A.values(), P.sym_shape(), [&](const Tensor& d) { return A.halo(d); }));
}

}  // namespace

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

bool same(const Features& x, const Features& y) {
  if (x.index() != y.index()) return false;
  if (const Tensor* dense = std::get_if<Tensor>(&x)) return dense->is_same(std::get<Tensor>(y));
  const auto &A = std::get<SparseMatrix>(x), &B = std::get<SparseMatrix>(y);
  return A.pattern().same_as(B.pattern()) && A.values().is_same(B.values());
}

LinearImpl::LinearImpl(int64_t in, int64_t out, bool with_bias) {
  weight = register_parameter("weight", torch::empty({out, in}));
  bias = register_parameter("bias", with_bias ? torch::empty({out}) : Tensor(), /*requires_grad=*/with_bias);
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  glorot(weight);
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(weight.size(1), 1)));
  if (bias.defined()) torch::nn::init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const Features& x) {
  return mapped(x, weight, bias);
}

Tensor mapped(const Features& x, const Tensor& weight, const Tensor& bias) {
  if (const Tensor* dense = std::get_if<Tensor>(&x)) {
    TORCH_CHECK_VALUE(dense->dim() == 2 && dense->sym_size(1) == weight.size(1), "Linear: x must be (nodes, ",
                      weight.size(1), "), not shape ", shape_text(*dense));
    return torch::linear(*dense, weight, bias);
  }
  const Tensor product = std::get<SparseMatrix>(x).matmul(weight.t());
  return bias.defined() ? product + bias : product;
}

// The buffers are copies: loading a state writes to them in place, and a pattern is frozen.
SparseParameterImpl::SparseParameterImpl(const SparseMatrix& A, bool requires_grad)
    : torch::nn::Module("SparseParameter"),
      pattern_(A.pattern().indptr().clone(), A.pattern().indices().clone(), A.shape(), /*check=*/false,
               A.pattern().entries()) {
  values = register_parameter("values", A.values().detach().clone(), requires_grad);
  indptr = register_buffer("indptr", pattern_.indptr());
  indices = register_buffer("indices", pattern_.indices());
  made_of_ = state();
}

SparseParameterImpl::State SparseParameterImpl::state() const {
  return {indptr.data_ptr(), indptr._version(), indices.data_ptr(), indices._version()};
}

void SparseParameterImpl::to(torch::Dtype dtype, bool non_blocking) {
  values.set_data(values.to(dtype, non_blocking));
}

void SparseParameterImpl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  to(device, non_blocking);
  to(dtype, non_blocking);
}

SparseMatrix SparseParameterImpl::matrix() {
  if (state() != made_of_) pattern_ = Pattern(indptr, indices, pattern_.shape(), /*check=*/true, pattern_.entries());
  made_of_ = state();
  return {pattern_, values};
}

GCNConvImpl::GCNConvImpl(int64_t in_channels, int64_t out_channels, GCNOptions given)
    : torch::nn::Module("GCNConv"), options(given) {
  if (!options.add_self_loops) options.add_self_loops = options.normalize;
  TORCH_CHECK_VALUE(options.normalize || !*options.add_self_loops,
                    "GCNConv: add_self_loops = true goes with normalize = true");
  lin = register_module("lin", Linear(in_channels, out_channels));
  bias = register_parameter("bias", options.bias ? torch::empty({out_channels}) : Tensor(), options.bias);
  reset_parameters();
}

void GCNConvImpl::reset_parameters() {
  lin->reset_parameters();
  if (bias.defined()) torch::nn::init::zeros_(bias);
  const std::lock_guard lock(mutex_);
  kept_.reset();
}

// D^-1/2 Ã D^-1/2, or A itself without normalize.
GCNConvImpl::Matrix GCNConvImpl::matrix(int64_t n, const Adjacency& adjacency,
                                        std::optional<Tensor> edge_weight) const {
  if (!edge_weight) edge_weight = values_of(adjacency);
  const auto loops = options.add_self_loops.value_or(options.normalize) ? SelfLoops::remaining : SelfLoops::none;
  const Edges edges = edges_of(name(), adjacency, {n, n}, loops);
  const Pattern& P = edges.pattern;
  const auto numbers = lin->weight.options().device(P.device()).requires_grad(false);
  Tensor weights;
  if (!edge_weight && options.loop_weight.value_or(1) == 1) {
    weights = at::ones({P.nnz()}, numbers);  // given edges and added loops weigh the same: their order does not matter
  } else {
    const Tensor given = edge_weight ? *edge_weight : at::ones({edges.given}, numbers);
    TORCH_CHECK_VALUE(given.dim() == 1 && given.size(0) == edges.given, "GCNConv: edge_weight has shape ",
                      shape_text(given), " for ", edges.given, " edges");
    const double loop_weight = options.loop_weight.value_or(options.improved ? 2.0 : 1.0);
    weights = edges.in_order(given, at::full({n}, loop_weight, given.options().requires_grad(false)));
  }
  if (const auto* A = std::get_if<DistributedMatrix>(&adjacency)) {
    const DistributedMatrix shared = shared_matrix(name(), *A, loops).with_values(weights);
    return options.normalize ? gcn_norm(shared) : shared;
  }
  return SparseMatrix(P, options.normalize ? ops::gcn_norm(P.tensors(), weights, P.sym_shape()) : weights);
}

Tensor GCNConvImpl::forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_weight) {
  std::optional<Matrix> A;
  {
    const std::lock_guard lock(mutex_);
    A = kept_;
  }
  if (!A) {
    A = matrix(rows_of(x), adjacency, edge_weight);
    const std::lock_guard lock(mutex_);
    if (options.cached) kept_ = A;
  }
  const auto* shared = std::get_if<DistributedMatrix>(&*A);
  const Tensor out = shared ? shared->matmul(of_own_rows(*shared, [&] { return lin->forward(x); }))
                            : std::get<SparseMatrix>(*A).matmul(lin->forward(x));
  return bias.defined() ? out + bias : out;
}

AttentionConvImpl::AttentionConvImpl(const char* layer, int64_t in_dst, int64_t out, AttentionConvOptions given)
    : torch::nn::Module(layer), options(std::move(given)), out_channels(out) {
  const int64_t total = options.concat ? options.heads * out : out;
  if (options.edge_dim) lin_edge = register_module("lin_edge", Linear(*options.edge_dim, options.heads * out));
  if (options.residual) res = register_module("res", Linear(in_dst, total));
  bias = register_parameter("bias", options.bias ? torch::zeros({total}) : Tensor(), options.bias);
}

Tensor AttentionConvImpl::of_sources(Linear lin, const Features& x, const Adjacency& adjacency) const {
  const auto* A = std::get_if<DistributedMatrix>(&adjacency);
  if (!A) return by_heads(lin->forward(x));
  const Tensor* dense = std::get_if<Tensor>(&x);
  if (dense && dense->dim() == 2 && dense->size(1) < options.heads * out_channels)
    return by_heads(lin->forward(A->halo(of_own_rows(*A, [&] { return *dense; }))));
  return by_heads(A->halo(of_own_rows(*A, [&] { return lin->forward(x); })));
}

Edges AttentionConvImpl::edges(const Adjacency& adjacency, Shape shape) const {
  return edges_of(name(), adjacency, shape, options.add_self_loops ? SelfLoops::replace : SelfLoops::none);
}

std::optional<Tensor> AttentionConvImpl::edge_features(const Adjacency& adjacency, std::optional<Tensor> edge_attr,
                                                       const Edges& edges) {
  if (!edge_attr) edge_attr = values_of(adjacency);
  if (!lin_edge || !edge_attr) return std::nullopt;
  const Tensor columns = edge_attr->dim() == 1 ? edge_attr->unsqueeze(1) : *edge_attr;
  TORCH_CHECK_VALUE(columns.dim() == 2 && columns.size(0) == edges.given && columns.size(1) == *options.edge_dim,
                    name(), ": edge_attr has shape ", shape_text(*edge_attr), ", not (", edges.given, ", ",
                    *options.edge_dim, ")");
  const int64_t n = std::min(edges.pattern.rows(), edges.pattern.cols());
  Tensor loops = columns.slice(0, 0, 0);
  if (options.add_self_loops) {
    if (const auto* reduce = std::get_if<std::string>(&options.fill_value))
      loops = ops::loop_features(edge_index_of(adjacency), columns, n, *reduce);
    else if (const auto* number = std::get_if<double>(&options.fill_value))
      loops = at::full({n, columns.size(1)}, *number, columns.options().requires_grad(false));
    else
      loops = std::get<Tensor>(options.fill_value).to(columns.options()).expand({n, columns.size(1)});
  }
  return by_heads(lin_edge->forward(edges.in_order(columns, loops)));
}

// Where processes share the graph, the mask depends on no partition: by original rows and columns, from one seed.
AttentionOptions AttentionConvImpl::attention_options(const Adjacency& adjacency, const Edges& edges,
                                                      const Tensor& x_src) const {
  AttentionOptions how{options.negative_slope, is_training() ? options.dropout : 0.0, {}, {}};
  const auto* A = std::get_if<DistributedMatrix>(&adjacency);
  if (A && how.dropout > 0) how.seed = ops::shared_seed(x_src, A->group()), how.keys = entry_keys(*A, edges.pattern);
  return how;
}

Tensor AttentionConvImpl::finish(const Tensor& Z, const Features& x_dst) {
  Tensor out = options.concat ? Z.flatten(1) : Z.mean(1);
  if (res) out = out + res->forward(x_dst);
  return bias.defined() ? out + bias : out;
}

}  // namespace gossamer::nn
