// SPDX-License-Identifier: BSD-3-Clause
// Eigenvalues and singular values from C++, against dense torch, with gradients on the pattern.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../message.h"

namespace gs = gossamer;

namespace {

const auto f64 = torch::kFloat64;

gs::SparseMatrix grid(int64_t width) {
  return gs::poisson({7, width}, f64);
}

torch::Tensor loss_of(const torch::Tensor& values, const torch::Tensor& X) {
  return values.pow(3).sum() + X.pow(4).sum();
}

}  // namespace

TEST(Spectral, ValuesAndGradientsAreThoseOfDenseEigh) {
  for (const int64_t width : {4, 8}) {  // dense, and Lanczos
    auto A = grid(width).requires_grad_();
    const auto X = A.detach().to_dense().requires_grad_();
    const auto [values, vectors] = gs::linalg::eigsh(A, 3, {.sigma = 0.0});
    const auto [all, every] = torch::linalg_eigh(X);
    const auto want = all.narrow(0, 0, 3);
    EXPECT_TRUE(torch::allclose(values, want));
    loss_of(values, vectors).backward();
    loss_of(want, every.narrow(1, 0, 3)).backward();
    const auto mask = A.with_values(torch::ones_like(A.values())).to_dense();
    EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), (X.grad() + X.grad().t()) / 2 * mask));
  }
}

TEST(Spectral, GeneralisedOnTwoPatterns) {
  const auto A = grid(8);
  const auto d = torch::linspace(1, 2, 56, f64);
  const auto M = gs::eye(56, f64).scale_rows(d).requires_grad_();
  const auto [values, X] = gs::linalg::eigsh(A, 2, {.M = M, .which = "LA"});
  const auto scale = d.rsqrt();
  const auto all = torch::linalg_eigvalsh(scale.unsqueeze(1) * A.to_dense() * scale);
  EXPECT_TRUE(torch::allclose(values, all.narrow(0, 54, 2)));
  EXPECT_TRUE(torch::allclose(A.matmul(X), M.matmul(X) * values));
  values[1].backward();
  EXPECT_TRUE(torch::allclose(M.grad()->values(), -values[1] * X.select(1, 1).square()));
}

TEST(Spectral, SingularValues) {
  const auto D = torch::randn({40, 30}, at::detail::createCPUGenerator(1), f64);
  const auto [U, all, Vh] = torch::linalg_svd(D);
  for (const std::string which : {"LM", "SM"}) {
    auto A = gs::from_dense(D).requires_grad_();
    const auto [left, S, right] = gs::linalg::svds(A, 2, which);
    EXPECT_TRUE(torch::allclose(S, all.narrow(0, which == "LM" ? 0 : 28, 2).flip(0)));
    EXPECT_TRUE(torch::allclose(A.matmul(right.t()), left * S, 1e-5, 1e-8));
    S.sum().backward();
    EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), left.matmul(right), 1e-5, 1e-8));
  }
}

TEST(Spectral, Errors) {
  auto A = grid(7).requires_grad_();  // its second and third values are equal
  const auto [values, X] = gs::linalg::eigsh(A, 3, {.sigma = 0.0});
  const auto loss = X.pow(4).sum();
  EXPECT_THROW(loss.backward(), c10::ValueError);
  EXPECT_THROW(gs::linalg::eigsh(gs::poisson({30, 30}, f64), 2, {.which = "SA", .maxiter = 1}), gs::ConvergenceError);
  EXPECT_EQ(message([&] { gs::linalg::eigsh(A, 50); }),
            "eigsh: k must be between 1 and 49, the number of rows, not 50");
  EXPECT_EQ(message([&] { gs::linalg::svds(A, 1, "XX"); }), "svds: which must be \"LM\" or \"SM\", not \"XX\"");
}
