// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factor, least squares and exponentials from C++, against dense torch.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "message.h"

namespace gs = gossamer;

namespace {

const auto f64 = torch::kFloat64;

}  // namespace

TEST(Factor, CholeskyHasItsPatternOnce) {
  const auto A = gs::poisson({5, 4}, f64);
  const auto [L, perm] = gs::linalg::cholesky(A);
  const torch::Tensor dense = A.to_dense().index({perm}).index({torch::indexing::Slice(), perm});
  EXPECT_TRUE(torch::allclose(L.to_dense(), torch::linalg_cholesky(dense)));
  const auto again = gs::linalg::cholesky(A.with_values(4 * A.values()));
  EXPECT_TRUE(again.L.pattern().same_as(L.pattern()));
  EXPECT_TRUE(torch::allclose(again.L.values(), 2 * L.values()));
  EXPECT_TRUE(torch::equal(gs::linalg::cholesky(A.T()).L.values(), L.values()));
}

TEST(Factor, CholeskyGivesTheGradientOfTheDeterminant) {
  const auto A = gs::poisson({5, 4}, f64).requires_grad_();
  (2 * gs::linalg::cholesky(A).L.diagonal().log().sum()).backward();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), gs::linalg::selected_inverse(A.detach()).to_dense()));
}

TEST(Factor, CholeskyNamesTheRow) {
  const auto A = gs::diag(torch::tensor({1.0, -2.0, 3.0}));
  EXPECT_EQ(message([&] { gs::linalg::cholesky(A); }),
            "cholesky: the matrix is not positive definite: the pivot of row 1 is not positive");
}

TEST(Factor, LeastSquares) {
  torch::manual_seed(0);
  const torch::Tensor dense = torch::randn({7, 3}, f64), b = torch::randn({7, 2}, f64), c = torch::randn({3}, f64);
  const torch::Tensor inverse = torch::linalg_pinv(dense);
  const auto A = gs::from_dense(dense).requires_grad_();
  EXPECT_TRUE(torch::allclose(gs::linalg::lstsq(A, b), inverse.matmul(b)));
  EXPECT_TRUE(torch::allclose(gs::linalg::lstsq(A.T(), c), inverse.t().matmul(c)));
  const torch::Tensor normal = dense.t().matmul(dense) + 0.25 * torch::eye(3, f64);
  EXPECT_TRUE(torch::allclose(gs::linalg::lstsq(A, b, 0.5), torch::linalg_solve(normal, dense.t().matmul(b))));
  gs::linalg::lstsq(A, b).square().sum().backward();
  const torch::Tensor X = dense.clone().requires_grad_();
  torch::linalg_pinv(X).matmul(b).square().sum().backward();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), X.grad()));
  const auto twice = gs::from_dense(torch::cat({dense, dense}, 1));
  EXPECT_THROW(gs::linalg::lstsq(twice, b), gs::SingularMatrixError);
  EXPECT_EQ(message([&] { gs::linalg::lstsq(A, b, 0, "qr"); }), "lstsq: method must be \"cholesky\", not \"qr\"");
}

TEST(Factor, Exponential) {
  torch::manual_seed(0);
  const torch::Tensor dense = torch::randn({6, 6}, f64), b = torch::randn({6}, f64);
  const auto A = gs::from_dense(dense);
  EXPECT_TRUE(torch::allclose(gs::linalg::expm_multiply(A, b, 0.7), torch::matrix_exp(0.7 * dense).matmul(b)));
}
