// SPDX-License-Identifier: BSD-3-Clause
// A nonlinear equation by Newton's method with sparse Jacobians, and its parameters from the solution. On the unit
// square, u = 0 on its boundary, N × N inner points, h = 1 / (N + 1), p = (log α, log β):
//
//   F(u; p) = -∇·((1 + α u²) ∇u) + β u³ - s = 0
//
// Nobody writes the Jacobian down: its pattern is found by probing F, its entries by a few products, and u(p) is
// differentiable by the implicit function theorem. Gauss and Newton then find p from u, with ∂u/∂p by differences of
// nothing: two solves with the Jacobian. The same as examples/newton_pde.py, without noise.
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

using torch::Tensor;
using torch::indexing::Slice;

struct Equation {
  int64_t side;
  double h;
  Tensor source;

  explicit Equation(int64_t n) : side(n), h(1.0 / static_cast<double>(n + 1)) {
    const Tensor place = h * torch::arange(1, n + 1, torch::kFloat64);
    const auto grid = torch::meshgrid({place, place}, "ij");
    source = (100 * torch::exp(-((grid[1] - 0.35).square() + (grid[0] - 0.6).square()) / 0.02) + 10).flatten();
  }

  // h² F(u; p).
  Tensor operator()(const Tensor& u, const Tensor& p) const {
    const Tensor alpha = p[0].exp(), beta = p[1].exp();
    const Tensor U = torch::constant_pad_nd(u.reshape({side, side}), {1, 1, 1, 1});
    const auto part = [this](const Tensor& V, int64_t row, int64_t col) {
      return V.index({Slice(row, row + side), Slice(col, col + side)});
    };
    const Tensor inside = part(U, 1, 1), k = 1 + alpha * U * U;
    Tensor F = h * h * beta * inside.pow(3);
    for (const auto& [row, col] : {std::pair{0, 1}, {2, 1}, {1, 0}, {1, 2}})
      F = F + 0.5 * (part(k, 1, 1) + part(k, row, col)) * (inside - part(U, row, col));
    return F.flatten() - h * h * source;
  }
};

int main(int argc, char** argv) {
  const Equation F(argc > 1 ? std::atoi(argv[1]) : 31);
  const Tensor truth = torch::tensor({40.0, 300.0}, torch::kFloat64).log(), start = torch::zeros_like(F.source);
  const gossamer::Pattern pattern = gossamer::jacobian_pattern([&](const Tensor& u) { return F(u, truth); }, start);
  const auto solve = [&](const Tensor& p) {
    return gossamer::linalg::root([&](const Tensor& u, torch::TensorList given) { return F(u, given[0]); }, start, {p},
                                  pattern);
  };
  const auto [measured, info] = solve(truth);
  std::printf("%lld unknowns, %lld entries, %lld iterations, residual %.1e\n", static_cast<long long>(start.size(0)),
              static_cast<long long>(pattern.nnz()), static_cast<long long>(info.iterations), info.residual);

  // The gradient of a misfit in p, against differences.
  const Tensor p = torch::tensor({20.0, 100.0}, torch::kFloat64).log().requires_grad_();
  const auto misfit = [&](const Tensor& at) { return (solve(at).x - measured).square().sum(); };
  const Tensor gradient = torch::autograd::grad({misfit(p)}, {p})[0], way = torch::tensor({0.6, -0.8}, torch::kFloat64);
  const double step = 1e-5, slope = gradient.dot(way).item<double>();
  const double difference =
      (misfit(p.detach() + step * way) - misfit(p.detach() - step * way)).item<double>() / (2 * step);
  std::printf("slope %.8f  by differences %.8f\n", slope, difference);
  if (!(std::abs(slope - difference) <= 1e-5 * std::abs(slope))) return 1;

  // Gauss and Newton: ∂u/∂p = -J⁻¹ ∂F/∂p, whose columns are products of forward mode.
  Tensor found = p.detach();
  for (int k = 0; k < 8; ++k) {
    const Tensor u = solve(found).x;
    const auto J = gossamer::jacobian([&](const Tensor& v) { return F(v, found); }, pattern)(u);
    const auto in_p = gossamer::jacobian([&](const Tensor& q) { return F(u, q); })(found);  // two columns
    const Tensor du = -gossamer::linalg::solve(J, in_p.to_dense());
    found = found - torch::linalg_solve(du.t().matmul(du), du.t().matmul(u - measured), /*left=*/true);
    std::printf("alpha %.6f  beta %.6f\n", found[0].exp().item<double>(), found[1].exp().item<double>());
  }
  return (found - truth).abs().max().item<double>() < 1e-8 ? 0 : 1;
}
