// SPDX-License-Identifier: BSD-3-Clause
// Finds how well a material conducts from the temperature it takes. On a grid, with a conductivity exp(θ_e) for each
// edge e between two nodes and a sink of strength 1 at every node,
//
//   A(θ) = I + Σ_e exp(θ_e) (u_e u_eᵀ),   u_e = e_from - e_to,       A(θ) x = b,
//
// and Adam finds the θ for which the x of some heat sources b are those that were measured. The gradient goes through
// the solve, from the factors of the forward pass.
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

using torch::Tensor;

struct Grid {
  int64_t n;
  Tensor from, to;  // of every edge
};

Grid grid(int64_t side) {
  const Tensor node = torch::arange(side * side).view({side, side});
  const auto all = torch::indexing::Slice();
  const auto head = torch::indexing::Slice(0, side - 1), tail = torch::indexing::Slice(1, side);
  return {side * side, torch::cat({node.index({all, head}).flatten(), node.index({head, all}).flatten()}),
          torch::cat({node.index({all, tail}).flatten(), node.index({tail, all}).flatten()})};
}

// Entries of one position are added: from_coo sums them, differentiably.
gossamer::SparseMatrix conduction(const Grid& g, const Tensor& theta) {
  const Tensor node = torch::arange(g.n), k = theta.exp();
  return gossamer::from_coo(torch::cat({node, g.from, g.to, g.from, g.to}),
                            torch::cat({node, g.from, g.to, g.to, g.from}),
                            torch::cat({torch::ones(g.n, k.options()), k, k, -k, -k}), {g.n, g.n});
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 200;
  torch::manual_seed(0);
  const Grid g = grid(8);
  const int64_t edges = g.from.size(0), sources = 40;
  const Tensor truth = torch::randn(edges, torch::kFloat64), b = torch::randn({g.n, sources}, torch::kFloat64);
  const Tensor measured = gossamer::linalg::solve(conduction(g, truth), b);
  const Tensor theta = torch::zeros(edges, torch::kFloat64).requires_grad_();
  const auto loss_at = [&](const Tensor& t) {
    return (gossamer::linalg::solve(conduction(g, t), b) - measured).square().sum();
  };

  // The derivative in a random direction against a difference of two losses.
  const Tensor way = torch::randn(edges, torch::kFloat64);
  const double h = 1e-5, slope = torch::autograd::grad({loss_at(theta)}, {theta})[0].dot(way).item<double>();
  const double difference =
      (loss_at(theta.detach() + h * way) - loss_at(theta.detach() - h * way)).item<double>() / (2 * h);
  std::printf("slope %.8f  by differences %.8f\n", slope, difference);
  if (!(std::abs(slope - difference) <= 1e-6 * std::abs(slope))) return 1;

  torch::optim::Adam adam({theta}, torch::optim::AdamOptions(0.05));
  double first = 0, last = 0;
  for (int step = 0; step <= steps; ++step) {
    adam.zero_grad();
    const Tensor loss = loss_at(theta);
    loss.backward();
    adam.step();
    last = loss.item<double>();
    if (step == 0) first = last;
    if (step % 50 == 0) std::printf("step %3d  loss %.6f\n", step, last);
  }
  std::printf("largest error of a conductivity's logarithm: %.4f\n", (theta - truth).abs().max().item<double>());
  return last < 1e-3 * first ? 0 : 1;
}
