// SPDX-License-Identifier: BSD-3-Clause
// Solves, determinants, Cholesky factors, least squares and exponentials from C++, against dense torch, with gradients
// on the pattern.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "message.h"

namespace gs = gossamer;

namespace {

const auto f64 = torch::kFloat64;

gs::SparseMatrix sample(int64_t n, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const torch::Tensor dense = gs::random({n, n}, 0.4, generator, f64).to_dense() + 3 * torch::eye(n, f64);
  return gs::from_dense(dense).requires_grad_();
}

// Our gradient of Σ sin(result) must be that of the dense twin, on the pattern.
template <class F, class G>
void expect_same(gs::SparseMatrix A, const F& ours, const G& dense) {
  const torch::Tensor X = A.detach().to_dense().requires_grad_();
  const torch::Tensor y = ours(A), z = dense(X);
  EXPECT_TRUE(torch::allclose(y, z));
  y.sin().sum().backward();
  z.sin().sum().backward();
  const torch::Tensor mask = A.with_values(torch::ones_like(A.values())).to_dense();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), X.grad() * mask));
}

}  // namespace

TEST(Linalg, Solve) {
  const torch::Tensor b = torch::randn({6, 2}, f64);
  expect_same(
      sample(6, 1), [&](auto& A) { return gs::linalg::solve(A, b); },
      [&](auto& X) { return torch::linalg_solve(X, b); });
}

TEST(Linalg, SolveTransposed) {
  const torch::Tensor b = torch::randn({6}, f64);
  expect_same(
      sample(6, 2), [&](auto& A) { return gs::linalg::factorize(A, "lu").solve(b, /*transpose=*/true); },
      [&](auto& X) { return torch::linalg_solve(X.t(), b); });
}

TEST(Linalg, SolveTriangular) {
  const torch::Tensor b = torch::randn({6}, f64);
  expect_same(
      sample(6, 3), [&](auto& A) { return gs::linalg::solve_triangular(A, b); },
      [&](auto& X) { return torch::linalg_solve(X.tril(), b); });
}

TEST(Linalg, ErrorsNameTheFunctionThatWasCalled) {
  const auto A = gs::random({2, 3}, 1.0, {}, f64);
  EXPECT_EQ(message([&] { gs::linalg::solve_triangular(A, torch::ones(2, f64)); }),
            "solve_triangular: the matrix must be square, not 2 x 3");
}

// A complex matrix goes through its real form: both ways, and log|det|.
TEST(Linalg, Complex) {
  const auto c128 = torch::kComplexDouble;
  const torch::Tensor dense = torch::randn({6, 6}, c128) + 5 * torch::eye(6, c128), b = torch::randn({6, 2}, c128);
  const auto factor = gs::linalg::factorize(gs::from_dense(dense));
  EXPECT_TRUE(torch::allclose(factor.solve(b), torch::linalg_solve(dense, b)));
  EXPECT_TRUE(torch::allclose(factor.solve(b, /*transpose=*/true), torch::linalg_solve(dense.t(), b)));
  EXPECT_TRUE(torch::allclose(factor.logdet(), std::get<1>(torch::linalg_slogdet(dense))));
  EXPECT_THROW(factor.slogdet(), c10::TypeError);
}

TEST(Linalg, LogDet) {
  expect_same(
      sample(6, 4), [](auto& A) { return gs::linalg::factorize(A).logdet(); }, [](auto& X) { return X.logdet(); });
}

TEST(Linalg, SignOfTheDeterminant) {
  const auto A = gs::from_dense(torch::tensor({{0.0, 2.0}, {3.0, 0.0}}, f64));
  const auto [sign, logabsdet] = gs::linalg::factorize(A).slogdet();
  EXPECT_EQ(sign.item<double>(), -1);
  EXPECT_NEAR(logabsdet.item<double>(), std::log(6.0), 1e-14);
}

TEST(Linalg, FactorsServeLaterRightHandSides) {
  const auto A = gs::poisson({5, 5}, f64);
  const gs::linalg::Factor factor = gs::linalg::factorize(A);
  for (int k = 0; k < 3; ++k) {
    const torch::Tensor b = torch::randn(25, f64);
    EXPECT_TRUE(torch::allclose(A.matmul(factor.solve(b)), b));
  }
}

TEST(Linalg, SingularMatrixThrows) {
  const auto A = gs::from_dense(torch::tensor({{1.0, 2.0}, {2.0, 4.0}}, f64));
  EXPECT_THROW(gs::linalg::factorize(A), gs::SingularMatrixError);
  EXPECT_THROW(gs::linalg::factorize(gs::random({2, 3}, 1.0, {}, f64)), c10::ValueError);
}

// Every engine that this program can load gives the same solution.
TEST(Linalg, Engines) {
  const auto A = gs::poisson({12, 12}, f64);
  const torch::Tensor b = torch::randn(144, f64), x = gs::linalg::solve(A, b, "auto", "eigen");
  for (const std::string engine : {"cholmod", "umfpack", "pardiso"}) {
    if (gs::show_config().find(engine) == std::string::npos) continue;
    for (const std::string kind : {"lu", "cholesky"})
      EXPECT_TRUE(torch::allclose(gs::linalg::solve(A, b, kind, engine), x)) << engine << " " << kind;
  }
}

TEST(Linalg, CholeskyHasItsPatternOnce) {
  const auto A = gs::poisson({5, 4}, f64);
  const auto [L, perm] = gs::linalg::cholesky(A);
  const torch::Tensor dense = A.to_dense().index({perm}).index({torch::indexing::Slice(), perm});
  EXPECT_TRUE(torch::allclose(L.to_dense(), torch::linalg_cholesky(dense)));
  const auto again = gs::linalg::cholesky(A.with_values(4 * A.values()));
  EXPECT_TRUE(again.L.pattern().same_as(L.pattern()));
  EXPECT_TRUE(torch::allclose(again.L.values(), 2 * L.values()));
  EXPECT_TRUE(torch::equal(gs::linalg::cholesky(A.T()).L.values(), L.values()));
}

TEST(Linalg, CholeskyGivesTheGradientOfTheDeterminant) {
  const auto A = gs::poisson({5, 4}, f64).requires_grad_();
  (2 * gs::linalg::cholesky(A).L.diagonal().log().sum()).backward();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), gs::linalg::selected_inverse(A.detach()).to_dense()));
}

TEST(Linalg, CholeskyNamesTheRow) {
  const auto A = gs::diag(torch::tensor({1.0, -2.0, 3.0}));
  EXPECT_EQ(message([&] { gs::linalg::cholesky(A); }),
            "cholesky: the matrix is not positive definite: the pivot of row 1 is not positive");
}

TEST(Linalg, LeastSquares) {
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
  EXPECT_EQ(message([&] { gs::linalg::lstsq(A, b, 0, "qr"); }),
            "lstsq: method must be \"cholesky\" or \"lsmr\", not \"qr\"");
}

TEST(Linalg, Exponential) {
  torch::manual_seed(0);
  const torch::Tensor dense = torch::randn({6, 6}, f64), b = torch::randn({6}, f64);
  const auto A = gs::from_dense(dense);
  EXPECT_TRUE(torch::allclose(gs::linalg::expm_multiply(A, b, 0.7), torch::matrix_exp(0.7 * dense).matmul(b)));
}
