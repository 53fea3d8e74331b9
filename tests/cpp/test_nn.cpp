// SPDX-License-Identifier: BSD-3-Clause
// The layers in C++, against dense torch: a masked softmax over all pairs of nodes.
#include <gossamer/gossamer.h>
#include <gossamer/nn.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace gs = gossamer;
using torch::Tensor;

namespace {

const auto f64 = torch::kFloat64;

struct Problem {
  Tensor edge_index = torch::tensor({{0, 1, 2, 3, 4, 0, 2, 2}, {1, 2, 3, 0, 0, 0, 0, 4}});
  Tensor x = torch::randn({5, 3}, f64);
  // mask[i, j]: an edge from j to i, self-loops for all
  Tensor mask() const {
    return torch::eye(5, f64).index_put({edge_index[1], edge_index[0]}, torch::ones(8, f64)).gt(0);
  }
};

// Σ_j softmax_j(e[i, j, h]) x[j, h, :] over the edges.
Tensor attend(const Tensor& e, const Tensor& mask, const Tensor& x) {
  const Tensor s = e.masked_fill(mask.logical_not().unsqueeze(-1), -INFINITY).softmax(1);
  return torch::einsum("ijh,jhc->ihc", {s, x});
}

template <class Layer>
void expect_same_gradients(Layer& layer, const Tensor& ours, const Tensor& dense) {
  EXPECT_TRUE(torch::allclose(ours, dense));
  const auto parameters = layer->parameters();
  const auto a = torch::autograd::grad({ours.sin().sum()}, parameters);
  const auto b = torch::autograd::grad({dense.sin().sum()}, parameters);
  for (size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(torch::allclose(a[k], b[k])) << k;
}

}  // namespace

TEST(Nn, GatEqualsDense) {
  const Problem p;
  gs::nn::GATConv layer(3, 4, gs::nn::AttentionConvOptions{.heads = 2});
  layer->to(f64);
  const Tensor x = torch::linear(p.x, layer->lin->weight).view({5, 2, 4});
  const Tensor e = torch::leaky_relu((x * layer->att_dst).sum(-1).unsqueeze(1) + (x * layer->att_src).sum(-1), 0.2);
  expect_same_gradients(layer, layer->forward(p.x, p.edge_index), attend(e, p.mask(), x).flatten(1) + layer->bias);
}

// A block with maps of its own for sources and targets, the same numbers in both, is the layer on one graph.
TEST(Nn, TheTargetsOfABlockAreScoredByTheirMap) {
  const Problem p;
  gs::nn::GATConv one(3, 4, {.heads = 2}), two(std::pair<int64_t, int64_t>{3, 3}, 4, {.heads = 2});
  one->to(f64), two->to(f64);
  const torch::NoGradGuard off;
  two->lin_src->weight.copy_(one->lin->weight), two->lin_dst->weight.copy_(one->lin->weight);
  two->att_src.copy_(one->att_src), two->att_dst.copy_(one->att_dst);
  const std::pair<gs::nn::Features, gs::nn::Features> both{p.x, p.x}, sparse{p.x, gs::from_dense(p.x)};
  const Tensor want = one->forward(p.x, p.edge_index);
  EXPECT_TRUE(torch::allclose(two->forward(both, p.edge_index), want));
  EXPECT_TRUE(torch::allclose(two->forward(sparse, p.edge_index), want));
  EXPECT_THROW(two->forward({p.x, p.x.slice(1, 0, 2)}, p.edge_index), c10::ValueError);
}

TEST(Nn, Gatv2EqualsDense) {
  const Problem p;
  gs::nn::GATv2Conv layer(3, 4, gs::nn::AttentionConvOptions{.heads = 2, .concat = false});
  layer->to(f64);
  const auto map = [&](const gs::nn::Linear& lin) {
    return torch::linear(p.x, lin->weight, lin->bias).view({5, 2, 4});
  };
  const Tensor src = map(layer->lin_l), dst = map(layer->lin_r);
  const Tensor e = (torch::leaky_relu(dst.unsqueeze(1) + src, 0.2) * layer->att).sum(-1);
  expect_same_gradients(layer, layer->forward(p.x, p.edge_index), attend(e, p.mask(), src).mean(1) + layer->bias);
}

TEST(Nn, GcnEqualsDense) {
  const Problem p;
  gs::nn::GCNConv layer(3, 4);
  layer->to(f64);
  const Tensor A = p.mask().to(f64), d = A.sum(1).rsqrt();
  const Tensor dense = (d.unsqueeze(1) * A * d).mm(torch::linear(p.x, layer->lin->weight)) + layer->bias;
  expect_same_gradients(layer, layer->forward(p.x, p.edge_index), dense);
}

TEST(Nn, SparseFeaturesAndMatricesAreTheSameLayer) {
  const Problem p;
  gs::nn::GATConv layer(3, 4, gs::nn::AttentionConvOptions{.heads = 2});
  layer->to(f64);
  const auto A = gs::from_edge_index(p.edge_index, {}, 5);
  const auto X = gs::from_dense(p.x * p.x.gt(0));
  EXPECT_TRUE(torch::allclose(layer->forward(X, A), layer->forward(X.to_dense(), p.edge_index)));
}

TEST(Nn, EdgeFeaturesResidualAndWeights) {
  const Problem p;
  gs::nn::GATv2Conv layer(std::pair<int64_t, int64_t>{3, 3}, 4,
                          gs::nn::AttentionConvOptions{.heads = 2, .edge_dim = 2, .residual = true});
  layer->to(f64);
  const Tensor e = torch::randn({8, 2}, f64);
  const std::pair<gs::nn::Features, gs::nn::Features> both{p.x, p.x};
  const auto [out, weighted] = layer->forward_with_weights(both, p.edge_index, e);
  EXPECT_TRUE(torch::allclose(out, layer->forward(both, p.edge_index, e)));
  const auto& [edge_index, weights] = weighted;
  EXPECT_EQ(edge_index.size(1), 7 + 5);  // one of the edges was a self-loop
  const Tensor sums = torch::zeros({5, 2}, f64).index_add(0, edge_index[1], weights);
  EXPECT_TRUE(torch::allclose(sums, torch::ones_like(sums)));
}

TEST(Nn, ParametersHavePygsNames) {
  gs::nn::GATConv layer(3, 4, gs::nn::AttentionConvOptions{.edge_dim = 2, .residual = true});
  std::vector<std::string> names;
  for (const auto& item : layer->named_parameters()) names.push_back(item.key());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"att_dst", "att_edge", "att_src", "bias", "lin.weight", "lin_edge.weight",
                                             "res.weight"}));
}

namespace {

struct WarningCount : c10::WarningHandler {
  void process(const c10::Warning&) override { ++count; }
  int count = 0;
};

}  // namespace

// torch warns of a parameter that is not there and wants a gradient.
TEST(Nn, ConstructionIsSilent) {
  WarningCount warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  for (const bool bias : {false, true}) {
    const gs::nn::GCNConv gcn(3, 4, {.bias = bias});
    const gs::nn::GATConv gat(3, 4, {.heads = 2, .edge_dim = 2, .bias = bias, .residual = true});
    const gs::nn::GATConv bipartite({3, 5}, 4, {.add_self_loops = false, .bias = bias});
    const gs::nn::GATv2Conv gatv2(3, 4, {.bias = bias, .share_weights = true});
    EXPECT_EQ(gatv2->parameters().size(), bias ? 4 : 2);
    const gs::nn::SparseParameter learned(gs::eye(3), /*requires_grad=*/bias);
    EXPECT_EQ(learned->shape(), (gs::Shape{3, 3}));
    EXPECT_EQ(gs::nn::SparseParameter(gs::eye(3))->forward(gs::eye(3)).nnz(), 3);
  }
  EXPECT_EQ(warnings.count, 0);
}
