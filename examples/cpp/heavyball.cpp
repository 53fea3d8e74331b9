// SPDX-License-Identifier: BSD-3-Clause
// Learned heavyball iteration, as in examples/heavyball.py: for A x = b
//
//   x⁽ᵏ⁺¹⁾ = x⁽ᵏ⁾ − α (A x⁽ᵏ⁾ − b) + β (x⁽ᵏ⁾ − x⁽ᵏ⁻¹⁾),        x⁽⁻¹⁾ = x⁽⁰⁾,
//
// and Adam finds the α and β for which twelve iterations with b = 0 leave the least energy Σ_k xᵀ A x of random x_k,
// the columns of X. With A's eigenvalues λ_j = 2 − 2 cos(jπ/17) the iteration is a polynomial p of λ, and the mean
// energy is Σ_j λ_j p(λ_j)²: the program fails if a search over a grid of α and β finds a much better place.
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <utility>

using torch::Tensor;

constexpr int64_t n = 16, iterations = 12, vectors = 512;

Tensor heavyball(const gossamer::SparseMatrix& A, Tensor X, const Tensor& alpha, const Tensor& beta) {
  Tensor before = X;
  for (int64_t k = 0; k < iterations; ++k) {
    const Tensor next = X - alpha * A.matmul(X) + beta * (X - before);
    before = std::exchange(X, next);
  }
  return X;
}

Tensor energy(const gossamer::SparseMatrix& A, const Tensor& X) {
  return (X * A.matmul(X)).sum();
}

// Σ_j λ_j p(λ_j)².
double expected(double alpha, double beta) {
  double total = 0;
  for (int64_t j = 1; j <= n; ++j) {
    const double lambda = 2 - 2 * std::cos(static_cast<double>(j) * std::numbers::pi / (n + 1));
    double before = 1, p = 1;
    for (int64_t k = 0; k < iterations; ++k) before = std::exchange(p, p - alpha * lambda * p + beta * (p - before));
    total += lambda * p * p;
  }
  return total;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 150;
  torch::manual_seed(0);
  const auto A = gossamer::poisson({n}, torch::kFloat64);
  const Tensor train = torch::randn({n, vectors}, torch::kFloat64);
  const Tensor test = torch::randn({n, vectors}, torch::kFloat64);
  const Tensor parameters = torch::zeros(2, torch::kFloat64).requires_grad_();

  // Down log ℓ: its minimum is that of ℓ, which falls by three decades.
  torch::optim::Adam adam({parameters}, torch::optim::AdamOptions(0.05));
  for (int step = 0; step <= steps; ++step) {
    adam.zero_grad();
    const Tensor loss = energy(A, heavyball(A, train, parameters[0], parameters[1]));
    if (step % 25 == 0) std::printf("step %3d  loss %.2f\n", step, loss.item<double>());
    if (step == steps) break;
    loss.log().backward();
    adam.step();
  }

  const torch::NoGradGuard no_grad;
  const double alpha = parameters[0].item<double>(), beta = parameters[1].item<double>();
  const double before = energy(A, test).item<double>();
  const double after = energy(A, heavyball(A, test, parameters[0], parameters[1])).item<double>();
  double best = before;
  for (double a = 0; a <= 1; a += 0.01)
    for (double b = -0.2; b <= 0.9; b += 0.01) best = std::min(best, expected(a, b));
  std::printf("α %.4f  β %.4f\nunseen vectors: energy %.1f before, %.2f after\n", alpha, beta, before, after);
  std::printf("expected energy %.5f, best of a grid search %.5f\n", expected(alpha, beta), best);
  return expected(alpha, beta) < 1.02 * best && after < 1e-3 * before ? 0 : 1;
}
