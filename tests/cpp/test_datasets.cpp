// SPDX-License-Identifier: BSD-3-Clause
// Graphs, equations and golden vectors from C++.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "message.h"

namespace gs = gossamer;
namespace eq = gossamer::equations;

TEST(Datasets, FolderRoundTrip) {
  const auto folder = std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "graph");
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "adjacency.mtx") << "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n";
  std::ofstream(folder / "features.mtx") << "%%MatrixMarket matrix coordinate real general\n3 2 1\n1 2 0.5\n";
  std::ofstream(folder / "labels.txt") << "1\n0\n-1\n";
  std::ofstream(folder / "train.txt") << "0\n";
  std::ofstream(folder / "val.txt") << "";
  std::ofstream(folder / "test.txt") << "1\n";
  const auto graph = gs::datasets::load(folder);
  EXPECT_EQ(graph.num_nodes(), 3);
  EXPECT_EQ(graph.num_classes, 2);
  EXPECT_EQ(graph.adjacency.nnz(), 4);
  EXPECT_EQ(graph.dense_x()[0][1].item<double>(), 0.5);
  EXPECT_TRUE(graph.test_mask[1].item<bool>());
  std::ofstream(folder / "test.txt") << "7\n";
  try {
    gs::datasets::load(folder);
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_EQ(error.what_without_backtrace(), "load: " + folder.string() + ": test node 7 is outside the 3 nodes");
  }
  std::filesystem::remove_all(folder);
  EXPECT_THROW(gs::datasets::load(folder), c10::Error);
}

// The plain path is differentiable, so autograd checks its own backward.
template <class Parameters>
void check_backward(const Parameters& p, const std::vector<torch::Tensor>& leaves,
                    const std::vector<std::string>& names) {
  const auto graph = gs::datasets::stochastic_block_model({60, 60}, 0.1, 0.02, {5, 1.0}, 0);
  const auto A = graph.adjacency.pattern();
  const auto H = graph.dense_x().to(torch::kFloat64);
  const auto all = eq::network(A, H, graph.y, graph.train_mask, std::vector<Parameters>{p});
  const auto grads = torch::autograd::grad({all.at(0).second}, leaves);
  for (size_t k = 0; k < names.size(); ++k)
    for (const auto& [name, value] : all)
      if (name == "layer1." + names[k]) {
        EXPECT_TRUE(torch::allclose(value, grads[k])) << name;
      }
}

TEST(Equations, BackwardIsTheDerivativeOfForward) {
  torch::manual_seed(0);
  const auto leaf = [](at::IntArrayRef size) { return torch::randn(size, torch::kFloat64).requires_grad_(); };
  const eq::ParametersV1 v1{leaf({3, 5, 2}), leaf({3, 2}), leaf({3, 2})};
  check_backward(v1, {v1.W, v1.a_dst, v1.a_src}, {"dW", "da_dst", "da_src"});
  const eq::ParametersV2 v2{leaf({3, 5, 2}), leaf({3, 5, 2}), leaf({3, 2})};
  check_backward(v2, {v2.W_dst, v2.W_src, v2.a}, {"dW_dst", "dW_src", "da"});
}

TEST(Datasets, GraphsAreAssembledMovedAndShown) {
  const auto graph = gs::datasets::stochastic_block_model({60, 80}, 1.0, 0.0);
  EXPECT_EQ(graph.repr(), "Graph(140 nodes, 9860 edges, 16 features, 2 classes, 40/60/40 train/val/test)");
  EXPECT_EQ(graph.to(torch::kCPU).num_features(), 16);
  EXPECT_EQ(gs::datasets::stochastic_block_model().num_nodes(), 400);
  EXPECT_EQ(gs::datasets::power_law().num_nodes(), 1000);
  const auto nodes = [](int64_t k) { return torch::full({1}, k, torch::kInt64); };
  const auto A = 2 * gs::eye(3);
  const auto y = torch::tensor({0, 2, 1});
  const auto small = gs::datasets::assemble("here", A, A, y, nodes(0), nodes(1), nodes(2));
  EXPECT_EQ(small.repr(), "Graph(3 nodes, 3 edges, 3 features, 3 classes, 1/1/1 train/val/test)");
  EXPECT_EQ(small.adjacency.sum().item<float>(), 3);
  EXPECT_EQ(message([&] { gs::datasets::assemble("here", A, A, y, nodes(0), nodes(0), nodes(2)); }),
            "here: a val node is in another split as well");
}

TEST(Golden, OptionsAreChecked) {
  const auto graph = gs::datasets::power_law(300, 900, 2.5, 3, 0.8, {4, 1.0}, 1);
  const auto all = gs::golden(graph);
  EXPECT_EQ(all.at(0).first, "indptr");
  EXPECT_EQ(all.back().first, "layer2.dH");
  gs::GoldenOptions options;
  options.heads = {1, 2, 3};
  EXPECT_THROW(gs::golden(graph, options), c10::ValueError);
  EXPECT_THROW(gs::write_npz("golden.txt", all), c10::ValueError);
}
