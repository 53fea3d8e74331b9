// SPDX-License-Identifier: BSD-3-Clause
// Trains a two-layer GAT to classify the nodes of a graph, without Python:
//
//   train_gat [FOLDER | synthetic] [epochs] [seed]
//
// FOLDER is in the format of docs/datasets.md. Heads, widths and rates are those of the GAT paper for Cora.
#include <gossamer/gossamer.h>
#include <gossamer/nn.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace gs = gossamer;
using torch::Tensor;

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t features, int64_t classes)
      : first(features, 8, gs::nn::AttentionConvOptions{.heads = 8, .dropout = 0.6}),
        second(64, classes, gs::nn::AttentionConvOptions{.concat = false, .dropout = 0.6}) {
    register_module("first", first);
    register_module("second", second);
  }

  Tensor forward(const gs::nn::Features& x, const gs::SparseMatrix& A) {
    const Tensor hidden = torch::elu(first->forward(drop(x), A));
    return second->forward(dropped(hidden), A);
  }

  Tensor dropped(const Tensor& t) const { return is_training() ? gs::dropout(t, 0.6) : t; }

  // Of a sparse matrix only the stored entries can be dropped; the others are zero.
  gs::nn::Features drop(const gs::nn::Features& x) const {
    if (const auto* sparse = std::get_if<gs::SparseMatrix>(&x))
      return sparse->map([this](const Tensor& t) { return dropped(t); });
    return dropped(std::get<Tensor>(x));
  }

  gs::nn::GATConv first, second;
};
TORCH_MODULE(Net);

// Features that add up to 1 in each node.
gs::nn::Features normalized(const gs::nn::Features& x) {
  const auto* sparse = std::get_if<gs::SparseMatrix>(&x);
  if (!sparse) return x;
  const Tensor total = sparse->sum(1);
  return sparse->scale_rows(torch::where(total == 0, torch::ones_like(total), 1 / total));
}

double accuracy(Net& net, const gs::nn::Features& x, const gs::datasets::Graph& graph, const Tensor& mask) {
  const torch::NoGradGuard off;
  net->eval();
  return net->forward(x, graph.adjacency)
      .argmax(1)
      .eq(graph.y)
      .masked_select(mask)
      .to(torch::kFloat)
      .mean()
      .item<double>();
}

int run(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "synthetic";
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 200;
  torch::manual_seed(argc > 3 ? std::atoi(argv[3]) : 0);
  const gs::datasets::Graph graph = data == "synthetic"
                                        ? gs::datasets::stochastic_block_model({200, 200, 200}, 0.1, 0.01, {}, 0)
                                        : gs::datasets::load(data);
  const gs::nn::Features x = normalized(std::visit([](const auto& X) { return gs::nn::Features(X); }, graph.x));
  const int64_t features = std::visit(
      [](const auto& X) -> int64_t {
        if constexpr (std::is_same_v<std::decay_t<decltype(X)>, gs::SparseMatrix>)
          return X.cols();
        else
          return X.size(1);
      },
      x);
  Net net(features, graph.num_classes);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.005).weight_decay(5e-4));
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    net->train();
    optimizer.zero_grad();
    const Tensor out = net->forward(x, graph.adjacency);
    const Tensor loss =
        torch::nn::functional::cross_entropy(out.index({graph.train_mask}), graph.y.index({graph.train_mask}));
    loss.backward();
    optimizer.step();
    if (epoch % 20 == 0 || epoch == epochs)
      std::printf("epoch %d: loss %.4f, validation %.1f %%\n", epoch, loss.item<double>(),
                  100 * accuracy(net, x, graph, graph.val_mask));
  }
  std::printf("test %.1f %%\n", 100 * accuracy(net, x, graph, graph.test_mask));
  return 0;
}

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "train_gat: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_gat: %s\n", error.what());
  }
  return 2;
}
