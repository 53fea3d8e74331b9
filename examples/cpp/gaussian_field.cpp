// SPDX-License-Identifier: BSD-3-Clause
// A Gaussian Markov random field fitted by its exact likelihood. On a grid, z ~ N(0, Q⁻¹) and measurements y = z +
// noise at some of the points, o:
//
//   Q = τ (κ² I + L)        A = Q + σ⁻² Eₒ        μ = σ⁻² A⁻¹ Eₒ y
//   -log p(y) = ½ (log det A - log det Q + m log σ² + σ⁻² ‖yₒ‖² - σ⁻⁴ yₒᵀ A⁻¹ yₒ) + const
//
// L is the grid's Laplacian and θ = (log τ, log κ², log σ²). The determinants' gradients cost a few factorisations, not
// n solves; the diagonal of A⁻¹ is what is not known of z yet. The same as examples/gaussian_field.py, in small.
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

using gossamer::SparseMatrix;
using gossamer::linalg::factorize;
using torch::Tensor;

struct Field {
  SparseMatrix laplacian, identity;

  explicit Field(int64_t side)
      : laplacian(gossamer::poisson({side, side}, torch::kFloat64)),
        identity(gossamer::eye(side * side, torch::kFloat64)) {}
  SparseMatrix precision(const Tensor& theta) const { return (laplacian + identity * theta[1].exp()) * theta[0].exp(); }
};

struct Posterior {
  Tensor loss, mean, variance;
};

// `at` is 1 where y was measured, else 0.
Posterior fit(const Field& field, const Tensor& at, const Tensor& y, const Tensor& theta) {
  const SparseMatrix Q = field.precision(theta);
  const Tensor weight = (-theta[2]).exp(), b = weight * at * y;
  const auto A = factorize(Q + gossamer::diag(weight * at), "cholesky");
  const Tensor mean = A.solve(b);
  const Tensor loss = A.logdet() - factorize(Q, "cholesky").logdet() + at.sum() * theta[2] +
                      weight * (at * y).square().sum() - b.dot(mean);
  return {0.5 * loss, mean, A.inverse_diagonal()};
}

int main(int argc, char** argv) {
  const int64_t side = argc > 1 ? std::atoi(argv[1]) : 40;
  torch::manual_seed(0);
  const Field field(side);
  const Tensor truth = torch::tensor({1.0, 0.1, 0.05}, torch::kFloat64).log();
  // z with the covariance Q⁻¹ is L⁻ᵀ of white noise, L Lᵀ = Q in the order of the factor.
  const auto [L, perm] = gossamer::linalg::cholesky(field.precision(truth));
  const Tensor white = torch::randn(side * side, torch::kFloat64);
  const Tensor z = torch::empty_like(white).index_copy_(
      0, perm,
      gossamer::linalg::solve_triangular(L, white, /*upper=*/false, /*unit_diagonal=*/false, /*transpose=*/true));
  const Tensor at = torch::rand(side * side, torch::kFloat64).lt(0.5).to(torch::kFloat64);
  const Tensor y = z + (0.5 * truth[2]).exp() * torch::randn_like(z);

  const Tensor theta = torch::zeros(3, torch::kFloat64).requires_grad_();
  const Tensor way = torch::tensor({0.5, -0.7, 0.4}, torch::kFloat64);
  const double h = 1e-5,
               slope = torch::autograd::grad({fit(field, at, y, theta).loss}, {theta})[0].dot(way).item<double>();
  const auto loss_at = [&](double t) { return fit(field, at, y, theta.detach() + t * way).loss.item<double>(); };
  std::printf("slope %.8f  by differences %.8f\n", slope, (loss_at(h) - loss_at(-h)) / (2 * h));
  if (!(std::abs(slope - (loss_at(h) - loss_at(-h)) / (2 * h)) <= 1e-6 * std::abs(slope))) return 1;

  torch::optim::LBFGS optimiser({theta}, torch::optim::LBFGSOptions(0.5).max_iter(60));
  optimiser.step([&] {
    optimiser.zero_grad();
    const Tensor loss = fit(field, at, y, theta).loss;
    loss.backward();
    return loss;
  });
  const Posterior found = fit(field, at, y, theta.detach());
  const Tensor shown = theta.detach().exp();
  std::printf("tau %.3f  kappa^2 %.3f  sigma^2 %.3f\n", shown[0].item<double>(), shown[1].item<double>(),
              shown[2].item<double>());
  // Judged where nothing was measured: errors of the size that the variances foretell, and a better fit than the truth.
  const Tensor unseen = at.eq(0), error = (found.mean - z).masked_select(unseen).square();
  const double ratio = (error / found.variance.masked_select(unseen)).mean().item<double>();
  const double better = fit(field, at, y, truth).loss.item<double>() - found.loss.item<double>();
  std::printf("error / variance %.3f  log likelihood above the truth's by %.3f\n", ratio, better);
  return ratio > 0.7 && ratio < 1.3 && better >= 0 && better < 10 ? 0 : 1;
}
