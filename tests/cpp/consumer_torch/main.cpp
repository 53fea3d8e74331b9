// SPDX-License-Identifier: BSD-3-Clause
// A C++ program that differentiates through a sparse product, without Python.
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  auto A = gossamer::poisson({4, 4}, torch::kFloat64).requires_grad_();
  const auto x = torch::ones(16, torch::kFloat64).requires_grad_();
  A.matmul(x).square().sum().backward();
  const auto D = A.detach().to_dense();
  const auto dx = 2 * D.t().mv(D.mv(x));
  std::cout << A.repr() << '\n' << A.grad()->repr() << '\n';
  return torch::allclose(x.grad(), dx) && A.grad()->nnz() == A.nnz() ? 0 : 1;
}
