// SPDX-License-Identifier: BSD-3-Clause
// Learned Jacobi relaxation, as in examples/learned_jacobi.py: one step with a weight for every node is
//
//   j(x, b; Ω) = Ω D⁻¹ b + (I − Ω D⁻¹ A) x,
//
// and Adam finds the Ω that minimises Σ_k j(x_k, 0; Ω)ᵀ A j(x_k, 0; Ω) over random vectors x_k, the columns of X. The
// mean over all X is least where (A ∘ A²) D⁻¹ ω = diag(A²): the program fails if it ends far from there.
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>

using torch::Tensor;

// One weighted Jacobi step with b = 0 for every column of X.
Tensor relax(const gossamer::SparseMatrix& A, const Tensor& diagonal, const Tensor& omega, const Tensor& X) {
  return X - (omega / diagonal).unsqueeze(1) * A.matmul(X);
}

// Σ xᵀ A x over the columns x of X.
Tensor energy(const gossamer::SparseMatrix& A, const Tensor& X) {
  return (X * A.matmul(X)).sum();
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 300;
  torch::manual_seed(0);
  const int64_t n = 16, vectors = 1024;
  const auto A = gossamer::poisson({n}, torch::kFloat64);
  const Tensor diagonal = A.diagonal();
  const Tensor X = torch::randn({n, vectors}, torch::kFloat64);
  const Tensor omega = torch::ones(n, torch::kFloat64).requires_grad_();

  torch::optim::Adam adam({omega}, torch::optim::AdamOptions(0.01));
  for (int step = 0; step < steps; ++step) {
    adam.zero_grad();
    const Tensor loss = energy(A, relax(A, diagonal, omega, X));
    loss.backward();
    adam.step();
    if (step % 50 == 0) std::printf("step %3d  loss %.1f\n", step, loss.item<double>());
  }

  const torch::NoGradGuard no_grad;
  std::printf("step %3d  loss %.1f\nweights:", steps, energy(A, relax(A, diagonal, omega, X)).item<double>());
  for (int64_t i = 0; i < n; ++i) std::printf(" %.3f", omega[i].item<double>());
  const auto squared = A.matmul(A);
  const Tensor best = diagonal * gossamer::linalg::solve(A * squared, squared.diagonal());
  const double gap = (omega - best).abs().max().item<double>();
  std::printf("\nlargest distance to the minimum of the expected loss: %.3f\n", gap);
  return gap < 0.06 ? 0 : 1;
}
