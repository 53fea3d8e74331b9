// SPDX-License-Identifier: BSD-3-Clause
// A learned preconditioner for conjugate gradients, as in examples/learned_preconditioner.py: on an 8 × 8 grid
//
//   A = A₈ ⊗ I + I ⊗ A₈,        M = L Lᵀ ≈ A⁻¹ with a lower bidiagonal L,
//
// and Adam finds the entries of L for which the residuals of four iterations, the later ones weighted more, are least:
//
//   ℓ = Σ_i w_i ‖r⁽ⁱ⁾‖ / ‖b‖,        w_i ∝ 0.6^(4 − i),        over random b, the columns of B.
//
// The program fails unless PCG beats CG at every iteration on right-hand sides that it has not seen.
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

using gossamer::SparseMatrix;
using torch::Tensor;

SparseMatrix laplacian(int64_t side) {
  const auto line = gossamer::poisson({side}, torch::kFloat64);
  const auto identity = gossamer::eye(side, {}, torch::kFloat64);
  return gossamer::kron(line, identity) + gossamer::kron(identity, line);
}

SparseMatrix bidiagonal(const Tensor& diagonal, const Tensor& below) {
  return gossamer::diag(diagonal) + gossamer::diag(below, -1);
}

// ‖r⁽ⁱ⁾‖ / ‖b‖ for i = 1 … iterations, mean over the columns of B; from x = 0, with M = L Lᵀ.
Tensor residuals(const SparseMatrix& A, const Tensor& B, const SparseMatrix& L, int iterations) {
  const auto precondition = [&](const Tensor& R) { return L.matmul(gossamer::spmm(L, R, /*transpose=*/true)); };
  Tensor R = B, Z = precondition(R), P = Z, rz = (R * Z).sum(0);
  std::vector<Tensor> history;
  for (int i = 0; i < iterations; ++i) {
    const Tensor Q = A.matmul(P);
    R = R - rz / (P * Q).sum(0) * Q;
    history.push_back((R.norm(2, 0) / B.norm(2, 0)).mean());
    Z = precondition(R);
    const Tensor before = std::exchange(rz, (R * Z).sum(0));
    P = Z + rz / before * P;
  }
  return torch::stack(history);
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  torch::manual_seed(0);
  const int64_t side = 8, n = side * side, vectors = 128;
  const auto A = laplacian(side);
  const Tensor B = torch::randn({n, vectors}, torch::kFloat64), unseen = torch::randn({n, vectors}, torch::kFloat64);
  const Tensor diagonal = torch::ones(n, torch::kFloat64).requires_grad_();
  const Tensor below = torch::zeros(n - 1, torch::kFloat64).requires_grad_();
  const Tensor weights = torch::pow(0.6, torch::arange(3, -1, -1, torch::kFloat64));

  torch::optim::Adam adam({diagonal, below}, torch::optim::AdamOptions(0.01));
  for (int step = 0; step <= steps; ++step) {
    adam.zero_grad();
    const Tensor history = residuals(A, B, bidiagonal(diagonal, below), 4);
    const Tensor loss = (weights * history).sum() / weights.sum();
    if (step % 25 == 0) {
      const double last = history[3].item<double>();
      std::printf("step %3d  loss %.4f  residual after 4 iterations %.4f\n", step, loss.item<double>(), last);
    }
    if (step == steps) break;
    loss.backward();
    adam.step();
  }

  const torch::NoGradGuard no_grad;
  const int shown = 24;
  const Tensor cg = residuals(A, unseen, gossamer::eye(n, {}, torch::kFloat64), shown);
  const Tensor pcg = residuals(A, unseen, bidiagonal(diagonal, below), shown);
  std::printf("iteration  CG        PCG, unseen right-hand sides\n");
  for (int i = 3; i < shown; i += 4)
    std::printf("%9d  %.2e  %.2e\n", i + 1, cg[i].item<double>(), pcg[i].item<double>());
  return (pcg < cg).all().item<bool>() ? 0 : 1;
}
