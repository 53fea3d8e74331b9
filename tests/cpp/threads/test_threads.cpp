// SPDX-License-Identifier: BSD-3-Clause
// One matrix, one factor, one layer, used by eight threads at once, forward and backward: every thread gets the bits
// that one alone gets. The objects are new each time, so that what they find once and keep is asked for by all at once.
// `make test-threads` runs it with the library under ThreadSanitizer.
#include <gossamer/gossamer.h>
#include <gossamer/nn.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <barrier>
#include <cstdlib>
#include <functional>
#include <thread>

namespace gs = gossamer;
using torch::Tensor;
using Results = std::vector<Tensor>;

namespace {

constexpr int threads = 8;

int rounds() {
  const char* text = std::getenv("GOSSAMER_THREADS_ROUNDS");
  return text ? std::atoi(text) : 20;
}

// use() by eight threads that start together; each must give what `alone` has.
void expect_same_from_all(const Results& alone, const std::function<Results()>& use) {
  std::vector<Results> found(threads);
  std::vector<std::string> failed(threads);
  std::barrier start(threads);
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      at::set_num_threads(1);
      start.arrive_and_wait();
      try {
        found[static_cast<size_t>(t)] = use();
      } catch (const std::exception& error) {
        failed[static_cast<size_t>(t)] = error.what();
      }
    });
  for (std::thread& each : team) each.join();
  for (int t = 0; t < threads; ++t) {
    const Results& here = found[static_cast<size_t>(t)];
    ASSERT_EQ(failed[static_cast<size_t>(t)], "");
    ASSERT_EQ(here.size(), alone.size());
    for (size_t k = 0; k < alone.size(); ++k) EXPECT_TRUE(torch::equal(here[k], alone[k])) << "result " << k;
  }
}

gs::SparseMatrix laplacian(double shift) {
  const gs::SparseMatrix A = gs::poisson({12, 12}, torch::kFloat64);
  return A.with_values((A.values() * (1 + shift)).detach().requires_grad_());
}

Tensor columns(int64_t n) {
  return torch::linspace(-1, 1, n * 3, torch::kDouble).sin().reshape({n, 3});
}

// y, and the gradients of a sum over it.
Results with_gradients(const Tensor& y, const std::vector<Tensor>& leaves) {
  Results all = torch::autograd::grad({y.sin().sum()}, leaves);
  all.insert(all.begin(), y.detach());
  return all;
}

}  // namespace

TEST(Threads, ShareAMatrix) {
  for (int round = 0; round < rounds(); ++round) {
    const auto use = [](const gs::SparseMatrix& A) {
      const Tensor X = columns(A.cols()).requires_grad_();
      const gs::SparseMatrix square = gs::spgemm(A, A), sum = A + A.T();
      return with_gradients(gs::spmm(A, X) + gs::spmm(square, X) + gs::spmm(sum, X), {A.values(), X});
    };
    const Results alone = use(laplacian(round));
    const gs::SparseMatrix shared = laplacian(round);
    expect_same_from_all(alone, [&] { return use(shared); });
  }
}

TEST(Threads, ShareAFactor) {
  for (const std::string kind : {"cholesky", "lu"})
    for (int round = 0; round < rounds(); ++round) {
      const auto use = [](const gs::linalg::Factor& factor) {
        const Tensor b = columns(factor.A().rows()).requires_grad_();
        const Tensor y = factor.solve(b) + factor.solve(b, /*transpose=*/true) + factor.logdet();
        return with_gradients(y, {factor.A().values(), b});
      };
      const Results alone = use(gs::linalg::factorize(laplacian(round), kind));
      const gs::linalg::Factor shared = gs::linalg::factorize(laplacian(round), kind);
      expect_same_from_all(alone, [&] { return use(shared); });
    }
}

TEST(Threads, ShareALayer) {
  for (int round = 0; round < rounds(); ++round) {
    torch::manual_seed(round);
    gs::nn::GATConv layer(3, 4, gs::nn::AttentionConvOptions{.heads = 2});
    layer->to(torch::kDouble);
    const auto use = [&](const gs::SparseMatrix& graph) {
      const Tensor x = columns(graph.cols()).requires_grad_();
      std::vector<Tensor> leaves = layer->parameters();
      leaves.push_back(x);
      return with_gradients(layer->forward(x, graph), leaves);
    };
    const Results alone = use(laplacian(round).detach());
    const gs::SparseMatrix shared = laplacian(round).detach();
    expect_same_from_all(alone, [&] { return use(shared); });
  }
}
