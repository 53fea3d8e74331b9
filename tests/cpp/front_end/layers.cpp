// SPDX-License-Identifier: BSD-3-Clause
// The layers of the C++ front end with the parameters of Python's: torch.ops.gossamer_cpp.layer.
#include <gossamer/nn.h>

#include "wire.h"

namespace nn = gossamer::nn;

namespace gossamer_cpp {
namespace {

using Names = std::vector<std::string>;

// Parameters by name, all of them, or an error: both front ends must have the same. They replace those of the layer, so
// that gradients reach the ones that were given.
void replace_parameters(torch::nn::Module& layer, const Names& names, at::TensorList parameters) {
  Names own;
  for (const auto& item : layer.named_parameters()) own.push_back(item.key());
  Names wanted = names;
  std::sort(own.begin(), own.end()), std::sort(wanted.begin(), wanted.end());
  TORCH_CHECK_VALUE(own == wanted, "layer: C++ has parameters ", own, " but Python has ", wanted);
  for (size_t k = 0; k < names.size(); ++k) layer.named_parameters()[names[k]].set_data(parameters[k]);
}

nn::Adjacency adjacency_of(at::TensorList edges) {  // edge_index, or a matrix on the wire
  if (edges.size() == 1) return edges[0];
  return Wire<SparseMatrix>::in(edges);
}

// {out, gradients of Σ sin(out) in x and in the parameters, in the order of their names}.
template <class Layer>
std::vector<Tensor> run(Layer layer, const Tensor& x, at::TensorList edges, const std::optional<Tensor>& features,
                        const Names& names, at::TensorList parameters) {
  layer->to(x.scalar_type());
  replace_parameters(*layer, names, parameters);
  const Tensor leaf = x.detach().clone().requires_grad_();
  const Tensor out = layer->forward(leaf, adjacency_of(edges), features);
  std::vector<Tensor> wanted = {leaf};
  for (const std::string& name : names) wanted.push_back(layer->named_parameters()[name]);
  std::vector<Tensor> result = torch::autograd::grad({out.sin().sum()}, wanted);
  result.insert(result.begin(), out.detach());
  return result;
}

std::vector<Tensor> attention_layer(std::string kind, int64_t out, int64_t heads, bool concat, bool loops,
                                    std::optional<int64_t> edge_dim, std::string fill, bool residual, bool share,
                                    Tensor x, at::TensorList edges, std::optional<Tensor> edge_attr, Names names,
                                    at::TensorList parameters) {
  const nn::AttentionConvOptions options{.heads = heads,
                                         .concat = concat,
                                         .add_self_loops = loops,
                                         .edge_dim = edge_dim,
                                         .fill_value = fill,
                                         .residual = residual,
                                         .share_weights = share};
  if (kind == "GATConv") return run(nn::GATConv(x.size(1), out, options), x, edges, edge_attr, names, parameters);
  return run(nn::GATv2Conv(x.size(1), out, options), x, edges, edge_attr, names, parameters);
}

std::vector<Tensor> gcn_layer(int64_t out, bool improved, bool normalize, bool bias, std::optional<bool> loops,
                              Tensor x, at::TensorList edges, std::optional<Tensor> edge_weight, Names names,
                              at::TensorList parameters) {
  const nn::GCNOptions options{.improved = improved, .normalize = normalize, .bias = bias, .add_self_loops = loops};
  return run(nn::GCNConv(x.size(1), out, options), x, edges, edge_weight, names, parameters);
}

const gossamer::Composites layers =
    gossamer::Composites("gossamer_cpp").def("attention_layer", attention_layer).def("gcn_layer", gcn_layer);

}  // namespace
}  // namespace gossamer_cpp
