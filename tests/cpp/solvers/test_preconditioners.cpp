// SPDX-License-Identifier: BSD-3-Clause
// Preconditioners from C++: against dense torch, in a plain iteration, with gradients, updated, copied.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../message.h"

namespace gs = gossamer;

namespace {

const auto f64 = torch::kFloat64;

// Conjugate gradients until the residual is 1e-8 of b; how many steps.
int64_t iterations(const gs::SparseMatrix& A, const gs::linalg::Preconditioner& M) {
  const torch::NoGradGuard constant;
  const torch::Tensor b = torch::ones(A.rows(), f64);
  torch::Tensor r = b.clone(), z = M.apply(r, false), p = z, rz = r.dot(z);
  int64_t k = 0;
  for (; k < 200 && (r.norm() > 1e-8 * b.norm()).item<bool>(); ++k) {
    const torch::Tensor q = A.matmul(p);
    r = r - rz / p.dot(q) * q;
    z = M.apply(r, false);
    const torch::Tensor next = r.dot(z);
    p = z + next / rz * p;
    rz = next;
  }
  return k;
}

}  // namespace

TEST(Preconditioners, Jacobi) {
  const auto A = gs::poisson({4, 3}, f64);
  const torch::Tensor r = torch::randn({12, 2}, f64);
  EXPECT_TRUE(torch::allclose(gs::linalg::jacobi(A)->apply(r, false), r / 4));
  const torch::Tensor dense = A.to_dense();
  const torch::Tensor inverse =
      torch::block_diag({dense.slice(0, 0, 5).slice(1, 0, 5).inverse(), dense.slice(0, 5, 10).slice(1, 5, 10).inverse(),
                         dense.slice(0, 10, 12).slice(1, 10, 12).inverse()});
  EXPECT_TRUE(torch::allclose(gs::linalg::block_jacobi(A, 5)->apply(r, true), inverse.t().matmul(r)));
  EXPECT_TRUE(torch::allclose(gs::linalg::block_jacobi(A, {5, 5, 2})->apply(r, false), inverse.matmul(r)));
}

TEST(Preconditioners, IncompleteFactors) {
  auto A = gs::poisson({5, 4}, f64).requires_grad_();
  const torch::Tensor mask = A.with_values(torch::ones_like(A.values())).to_dense();
  for (const auto& M : {gs::linalg::ichol(A), gs::linalg::ilu(A)}) {
    const torch::Tensor L = M->L().to_dense(), U = M->U().to_dense(), r = torch::randn({20}, f64);
    EXPECT_TRUE(torch::allclose(L.matmul(U) * mask, A.to_dense()));
    EXPECT_TRUE(torch::allclose(M->apply(r, false), torch::linalg_solve(L.matmul(U), r)));
    M->apply(r, false).sum().backward();
    EXPECT_TRUE(A.grad()->values().isfinite().all().item<bool>());
  }
  const auto singular = gs::from_dense(torch::tensor({1., 2., 2., 1.}, f64).view({2, 2}));
  EXPECT_THROW(gs::linalg::ichol(singular), gs::SingularMatrixError);
  EXPECT_NO_THROW(gs::linalg::ichol(singular, 2.0));
}

TEST(Preconditioners, Amg) {
  const auto A = gs::poisson({60, 50}, f64);
  const auto M = gs::linalg::amg(A);
  EXPECT_LE(iterations(A, *M), 12);
  EXPECT_GE(M->sizes().size(), 2u);
  EXPECT_LT(M->operator_complexity(), 2);
  const auto copy = M->copy();
  const torch::Tensor r = torch::randn({3000}, f64);
  M->update(A * 2);
  EXPECT_TRUE(torch::allclose(M->apply(r, false) * 2, copy->apply(r, true)));
  EXPECT_EQ(message([&] { M->update(gs::poisson({50, 60}, f64)); }).find("amg.update: A has another pattern"), 0u);
}

TEST(Preconditioners, AmgIsLearned) {
  const auto A = gs::poisson({12, 12}, f64);
  auto omega = torch::full({}, 1.0, f64).requires_grad_();
  const auto M = gs::linalg::amg(A, {.omega = omega, .coarse_size = 20});
  const torch::Tensor r = torch::randn({144}, f64);
  const auto loss = [&](const torch::Tensor& w) {
    M->update(A, w);
    return M->apply(r, false).square().sum();
  };
  loss(omega).backward();
  const double h = 1e-6, difference = (loss(omega.detach() + h) - loss(omega.detach() - h)).item<double>() / (2 * h);
  EXPECT_NEAR(omega.grad().item<double>(), difference, 1e-5 * std::abs(difference));
}
