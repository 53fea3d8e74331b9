// SPDX-License-Identifier: BSD-3-Clause
// What the layers keep, share and compute once, as Python's do: the edges of a graph, weights, ones. And their errors.
#include <gossamer/gossamer.h>
#include <gossamer/nn.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>
#include <thread>

#include "calls.h"
#include "message.h"

namespace gs = gossamer;
using gs::nn::AttentionConvOptions;
using torch::Tensor;

namespace {

const auto f64 = torch::kFloat64;

Tensor graph() {
  return torch::tensor({{0, 1, 2, 3, 4, 0, 2, 2}, {1, 2, 3, 0, 0, 0, 0, 4}});
}

template <class Layer>
std::vector<std::string> names_of(const Layer& layer) {
  std::vector<std::string> names;
  for (const auto& item : layer->named_parameters()) names.push_back(item.key());
  return names;
}

}  // namespace

TEST(Layers, SharedWeightsAreOneParameterAndOneProduct) {
  gs::nn::GATv2Conv layer(3, 4, AttentionConvOptions{.heads = 2, .share_weights = true});
  EXPECT_EQ(names_of(layer), (std::vector<std::string>{"bias", "att", "lin_l.weight", "lin_l.bias"}));
  const Tensor x = torch::randn({5, 3}), edges = graph();
  EXPECT_EQ(calls_of("aten::linear", [&] { layer->forward(x, edges); }), 1);
  gs::nn::GATv2Conv apart(3, 4, AttentionConvOptions{.heads = 2});
  EXPECT_EQ(calls_of("aten::linear", [&] { apart->forward(x, edges); }), 2);

  torch::optim::SGD optimizer(layer->parameters(), /*lr=*/0.5);
  layer->forward(x, edges).square().sum().backward();
  const Tensor before = layer->lin_l->weight.detach().clone(), step = 0.5 * layer->lin_l->weight.grad();
  optimizer.step();
  EXPECT_TRUE(torch::allclose(layer->lin_l->weight, before - step));
}

TEST(Layers, GcnWithoutWeightsGathersNothing) {
  gs::nn::GCNConv layer(3, 4);
  const Tensor x = torch::randn({5, 3}), edges = graph();
  layer->forward(x, edges);  // sorts the edges
  EXPECT_EQ(calls_of("aten::index_select", [&] { layer->forward(x, edges); }), 0);
}

TEST(Layers, EdgesOfOneGraphAreSortedOnceForAllLayers) {
  const Tensor x = torch::randn({5, 3}), edges = graph();
  gs::nn::GATConv first(3, 4), second(3, 4);
  EXPECT_EQ(calls_of("gossamer::graph", [&] { first->forward(x, edges), second->forward(x, edges); }), 1);
  const Tensor other = graph();
  EXPECT_EQ(calls_of("gossamer::graph", [&] { first->forward(x, other), first->forward(x, edges); }), 1);
  other.select(0, 0).fill_(1);  // written to: what was kept is of another graph
  gs::nn::GATConv fresh(3, 4);
  EXPECT_EQ(calls_of("gossamer::graph", [&] { fresh->forward(x, other); }), 1);
  const auto A = gs::from_edge_index(edges, {}, 5);
  EXPECT_EQ(calls_of("gossamer::graph", [&] { first->forward(x, A), second->forward(x, A.pattern()); }), 1);
}

TEST(Layers, OptionsChangedAfterAForwardCount) {
  const Tensor x = torch::randn({5, 3}), edges = graph();
  gs::nn::GATConv layer(3, 4), without(3, 4, AttentionConvOptions{.add_self_loops = false});
  const torch::NoGradGuard off;
  for (const auto& item : layer->named_parameters()) without->named_parameters()[item.key()].copy_(item.value());
  layer->forward(x, edges);
  layer->options.add_self_loops = false;
  EXPECT_TRUE(torch::equal(layer->forward(x, edges), without->forward(x, edges)));
}

TEST(Layers, AGraphChangedBehindTorchsBackIsSeen) {
  const Tensor x = torch::randn({5, 3}), edges = graph().clone();
  gs::nn::GATConv layer(3, 4);
  layer->forward(x, edges);
  edges.data_ptr<int64_t>()[0] = 3;
  EXPECT_TRUE(torch::equal(layer->forward(x, edges), layer->forward(x, edges.clone())));
}

TEST(Layers, WhatDoesNotFitIsRefused) {
  const Tensor edges = graph();
  EXPECT_EQ(message([&] { gs::nn::GATConv(6, 5)->forward(torch::ones({4, 4, 6}), edges); }),
            "Linear: x must be (nodes, 6), not shape (4, 4, 6)");
  EXPECT_EQ(message([&] { gs::nn::GATv2Conv(6, 5)->forward(torch::ones({5, 6}), edges, torch::ones({8, 2})); }),
            "GATv2Conv: edge_attr is given, but the layer has no edge_dim");
}

TEST(Layers, AddedLoopsHaveTheWeightThatIsGiven) {
  const Tensor x = torch::eye(2), edges = torch::tensor({{0, 1}, {1, 0}});
  gs::nn::GCNConv layer(2, 2, gs::nn::GCNOptions{.bias = false, .loop_weight = 2.0});
  const Tensor A = torch::tensor({{2.0, 1.0}, {1.0, 2.0}}) / 3;
  EXPECT_TRUE(torch::allclose(layer->forward(x, edges), torch::mm(A, layer->lin->weight.t())));
}

TEST(Layers, ALearnedMatrixIsTrainedSavedAndLoaded) {
  const auto A = gs::poisson({4}), B = gs::eye(4).matmul(gs::poisson({4})) * 3.0;
  gs::nn::SparseParameter learned(A), other(B);
  const Tensor x = torch::randn({4}), before = learned->forward(x);
  EXPECT_EQ(learned->parameters().size(), 1U);
  EXPECT_EQ(learned->buffers().size(), 2U);
  torch::optim::SGD sgd(learned->parameters(), 0.1);
  before.square().sum().backward();
  sgd.step();
  EXPECT_FALSE(torch::equal(learned->forward(x), before));
  EXPECT_TRUE(torch::equal(A.matmul(x), before));  // the given matrix stays

  std::stringstream file;
  torch::save(learned, file);
  other->forward(x);
  torch::load(other, file);
  EXPECT_TRUE(torch::equal(other->forward(x), learned->forward(x)));
  learned->to(f64);
  EXPECT_EQ(learned->forward(x.to(f64)).scalar_type(), f64);
}

TEST(Layers, PatternsAndMatricesAreAdjacencies) {
  const Tensor x = torch::randn({5, 3}), edges = graph();
  const auto A = gs::from_edge_index(edges, {}, 5);
  gs::nn::GATConv gat(3, 4);
  gs::nn::GATv2Conv gatv2(3, 4);
  gs::nn::GCNConv gcn(3, 4);
  EXPECT_TRUE(torch::allclose(gat->forward(x, A.pattern()), gat->forward(x, edges)));
  EXPECT_TRUE(torch::allclose(gatv2->forward(x, A.pattern()), gatv2->forward(x, A)));
  EXPECT_TRUE(torch::allclose(gcn->forward(x, A.pattern()), gcn->forward(x, A)));
  EXPECT_EQ(message([&] { gat->forward(x, gs::eye(6).pattern()); }),
            "GATConv: the pattern is (6, 6) but there are (5, 5) (targets, sources)");
}

TEST(Layers, FeaturesOfLoopsAreANumberATensorOrAReduction) {
  const Tensor x = torch::randn({5, 3}), edges = graph(), e = torch::randn({8, 2});
  gs::nn::GATv2Conv layer(3, 4, AttentionConvOptions{.edge_dim = 2, .fill_value = 0.5});
  const Tensor with_number = layer->forward(x, edges, e);
  layer->options.fill_value = torch::tensor({0.5, 0.5});
  EXPECT_TRUE(torch::equal(layer->forward(x, edges, e), with_number));
  layer->options.fill_value = "max";
  EXPECT_FALSE(torch::equal(layer->forward(x, edges, e), with_number));
}

// In turns of graphs, so that every thread finds, makes and drops edges while others do.
template <class Layer>
void expect_the_same_from_threads(Layer layer) {
  layer->eval();
  const Tensor x = torch::randn({5, 3}), first = graph(), second = graph().flip(0).contiguous();
  const torch::NoGradGuard off;
  const Tensor wanted_first = layer->forward(x, first), wanted_second = layer->forward(x, second);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&, k] {
      const torch::NoGradGuard off_here;
      for (int turn = 0; turn < 40; ++turn) {
        const bool flip = (turn + k) % 2 == 0;
        const Tensor edges = turn % 3 ? (flip ? first : second) : (flip ? first : second).clone();
        if (!torch::equal(layer->forward(x, edges), flip ? wanted_first : wanted_second)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Layers, ThreadsMayShareALayer) {
  expect_the_same_from_threads(gs::nn::GATConv(3, 4, AttentionConvOptions{.heads = 2}));
  expect_the_same_from_threads(gs::nn::GATv2Conv(3, 4, AttentionConvOptions{.heads = 2, .share_weights = true}));
  expect_the_same_from_threads(gs::nn::GCNConv(3, 4));
}

TEST(Layers, ErrorsAreThoseOfPython) {
  const Tensor x = torch::ones({4, 3}), edges = torch::tensor({{0}, {1}});
  EXPECT_EQ(message([&] { gs::nn::GCNConv(3, 2)->forward(x, edges, torch::ones(3)); }),
            "GCNConv: edge_weight has shape (3,) for 1 edges");
  gs::nn::GATv2Conv layer(3, 2, AttentionConvOptions{.edge_dim = 2});
  EXPECT_EQ(message([&] { layer->forward(x, edges, torch::ones({1, 3})); }),
            "GATv2Conv: edge_attr has shape (1, 3), not (1, 2)");
}
