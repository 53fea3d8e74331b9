// SPDX-License-Identifier: BSD-3-Clause
// Graph layers as torch::nn modules, with the arguments and the parameter names of PyG's layers of these names.
//
//   const auto x = torch::randn({3, 1433});
//   const auto edge_index = torch::tensor({{0, 1, 2}, {1, 2, 0}});  // sources above targets
//   gossamer::nn::GATConv conv(1433, 8, {.heads = 8, .dropout = 0.6});
//   const auto h = torch::elu(conv->forward(x, edge_index));
//
// Not part of gossamer.h: torch's modules take long to compile.
#pragma once
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include <gossamer/distributed.h>
#include <gossamer/edges.h>

namespace gossamer::nn {

using Features = std::variant<Tensor, SparseMatrix>;  // (N, F); sparse features stay sparse
// edge_index (2, E), sources above targets; or a pattern or a matrix whose row i holds the edges that point at i.
// Of a matrix whose rows are on many processes, this process's rows: own rows of x then go in, and own rows come out.
using Adjacency = std::variant<Tensor, Pattern, SparseMatrix, DistributedMatrix>;
using Weighted = std::pair<Tensor, std::pair<Tensor, Tensor>>;  // out, (edge_index, weights of the edges)

// x Wᵀ + b, for dense and sparse x.
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(int64_t in, int64_t out, bool bias = false);
  void reset_parameters();
  Tensor forward(const Features& x);
  Tensor weight, bias;
};
TORCH_MODULE(Linear);

// A matrix that is learned: its values are a parameter, its pattern two buffers, so that optimisers, to(), save and
// load see them. matrix() is the matrix of what they hold now.
class SparseParameterImpl : public torch::nn::Module {
 public:
  explicit SparseParameterImpl(const SparseMatrix& A, bool requires_grad = true);
  const Shape& shape() const { return pattern_.shape(); }
  SparseMatrix matrix();
  Tensor forward(const Tensor& X) { return matrix().matmul(X); }
  SparseMatrix forward(const SparseMatrix& X) { return matrix().matmul(X); }
  Tensor values, indptr, indices;

  // A type is one of the values: torch's own would make the indices floating-point numbers, too.
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  using torch::nn::Module::to;

 private:
  using State = std::tuple<const void*, uint32_t, const void*, uint32_t>;
  State state() const;  // of the buffers: loading and moving write to them in place
  Pattern pattern_;
  State made_of_;
};
TORCH_MODULE(SparseParameter);

// What TORCH_MODULE makes, a shared pointer to a layer, with constructors that take the options in braces:
// GATConv(16, 8, {.heads = 4}). Of `in`, bipartite graphs have two: {sources, destinations}.
template <class Layer, class Options>
class LayerHolder : public torch::nn::ModuleHolder<Layer> {
 public:
  using Impl = Layer;
  using torch::nn::ModuleHolder<Layer>::ModuleHolder;
  LayerHolder(int64_t in, int64_t out, Options options = {})
      : torch::nn::ModuleHolder<Layer>(std::make_shared<Layer>(in, out, std::move(options))) {}
  LayerHolder(std::pair<int64_t, int64_t> in, int64_t out, Options options = {})
    requires std::constructible_from<Layer, std::pair<int64_t, int64_t>, int64_t, Options>
      : torch::nn::ModuleHolder<Layer>(std::make_shared<Layer>(in, out, std::move(options))) {}
};

// The layers below sort the edges of a graph once. They are kept with a pattern, or for as long as the edge_index lives
// and is not written to, whichever layer asks. Threads may share a layer, as long as none of them changes it.

struct GCNOptions {
  bool improved = false, cached = false, normalize = true, bias = true;
  std::optional<bool> add_self_loops = {};  // as normalize
  // Of self-loops that are added. Without it, as PyG's: 1, or 2 with `improved` and where edges have weights.
  std::optional<double> loop_weight = {};
};

class GCNConvImpl : public torch::nn::Module {
 public:
  GCNConvImpl(int64_t in_channels, int64_t out_channels, GCNOptions options = {});
  void reset_parameters();
  Tensor forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_weight = {});

  GCNOptions options;
  Linear lin{nullptr};
  Tensor bias;

 private:
  using Matrix = std::variant<SparseMatrix, DistributedMatrix>;
  Matrix matrix(int64_t n, const Adjacency& adjacency, std::optional<Tensor> edge_weight) const;
  std::mutex mutex_;
  std::optional<Matrix> kept_;  // the first matrix, if options.cached
};
using GCNConv = LayerHolder<GCNConvImpl, GCNOptions>;

struct AttentionConvOptions {
  int64_t heads = 1;
  bool concat = true;
  double negative_slope = 0.2, dropout = 0;
  bool add_self_loops = true;
  std::optional<int64_t> edge_dim = {};
  std::variant<std::string, double, Tensor> fill_value = "mean";  // features of the loops: see ops::loop_features
  bool bias = true, residual = false;
  bool share_weights = false;  // GATv2 only
};

// What both attention layers share.
class AttentionConvImpl : public torch::nn::Module {
 public:
  AttentionConvImpl(const char* name, int64_t in_dst, int64_t out_channels, AttentionConvOptions options);

  AttentionConvOptions options;
  int64_t out_channels;
  Linear lin_edge{nullptr}, res{nullptr};
  Tensor bias;

 protected:
  Tensor by_heads(const Tensor& x) const { return x.view({-1, options.heads, out_channels}); }
  // W x, by heads, of all nodes that edges come from. Where processes share them, the narrower of x and W x is fetched.
  Tensor of_sources(Linear lin, const Features& x, const Adjacency& adjacency) const;
  Edges edges(const Adjacency& adjacency, Shape shape) const;
  std::optional<Tensor> edge_features(const Adjacency& adjacency, std::optional<Tensor> edge_attr, const Edges& edges);
  AttentionOptions attention_options(const Adjacency& adjacency, const Edges& edges, const Tensor& x_src) const;
  Tensor finish(const Tensor& Z, const Features& x_dst);  // heads side by side or averaged, the residual, the bias
};

class GATConvImpl : public AttentionConvImpl {
 public:
  GATConvImpl(int64_t in_channels, int64_t out_channels, AttentionConvOptions options = {});
  GATConvImpl(std::pair<int64_t, int64_t> in_channels, int64_t out_channels, AttentionConvOptions options = {});
  void reset_parameters();
  Tensor forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_attr = {});
  Tensor forward(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                 const std::optional<Tensor>& edge_attr = {});
  Weighted forward_with_weights(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                                const std::optional<Tensor>& edge_attr = {});

  Linear lin{nullptr}, lin_src{nullptr}, lin_dst{nullptr};
  Tensor att_src, att_dst, att_edge;

 private:
  struct Inputs;
  Inputs inputs(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                const std::optional<Tensor>& edge_attr);
};
using GATConv = LayerHolder<GATConvImpl, AttentionConvOptions>;

class GATv2ConvImpl : public AttentionConvImpl {
 public:
  GATv2ConvImpl(int64_t in_channels, int64_t out_channels, AttentionConvOptions options = {});
  GATv2ConvImpl(std::pair<int64_t, int64_t> in_channels, int64_t out_channels, AttentionConvOptions options = {});
  void reset_parameters();
  Tensor forward(const Features& x, const Adjacency& adjacency, const std::optional<Tensor>& edge_attr = {});
  Tensor forward(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                 const std::optional<Tensor>& edge_attr = {});
  Weighted forward_with_weights(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                                const std::optional<Tensor>& edge_attr = {});

  Linear lin_l{nullptr}, lin_r{nullptr};  // with share_weights one map, registered once, as lin_l
  Tensor att;

 private:
  struct Inputs;
  Inputs inputs(const std::pair<Features, Features>& x, const Adjacency& adjacency,
                const std::optional<Tensor>& edge_attr);
};
using GATv2Conv = LayerHolder<GATv2ConvImpl, AttentionConvOptions>;

}  // namespace gossamer::nn
