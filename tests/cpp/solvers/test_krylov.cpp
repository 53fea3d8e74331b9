// SPDX-License-Identifier: BSD-3-Clause
// Iterative solves from C++: matrices and operators, against dense torch, with gradients.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../message.h"

namespace gs = gossamer;
namespace la = gossamer::linalg;
using torch::Tensor;

namespace {

const auto f64 = torch::kFloat64;
using Method = la::KrylovResult (*)(const gs::SparseMatrix&, const Tensor&, const la::KrylovOptions&);
using OperatorMethod = la::KrylovResult (*)(const la::LinearOperator&, const Tensor&, const la::KrylovOptions&);

gs::SparseMatrix general() {
  torch::manual_seed(3);
  const auto A = gs::poisson({4, 3}, f64);
  return A.with_values(A.values() + 0.3 * torch::rand_like(A.values()));
}

// x, dA on the pattern and db, of Σ sin(x).
void expect_same(Method method, const gs::SparseMatrix& given, const la::KrylovOptions& options) {
  const auto A = given.detach().clone().requires_grad_();
  const Tensor b = torch::randn({12, 2}, f64).requires_grad_(), c = b.detach().clone().requires_grad_();
  const Tensor X = A.detach().to_dense().requires_grad_();
  const auto [x, info] = method(A, b, options);
  const Tensor y = torch::linalg_solve(X, c);
  EXPECT_TRUE(torch::allclose(x, y));
  EXPECT_TRUE(info.converged.all().item<bool>());
  x.sin().sum().backward();
  y.sin().sum().backward();
  const Tensor mask = A.with_values(torch::ones_like(A.values())).to_dense();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), X.grad() * mask));
  EXPECT_TRUE(torch::allclose(b.grad(), c.grad()));
}

la::LinearOperator convection(const Tensor& k, bool transpose_given) {
  const auto matvec = [](const Tensor& x, const std::vector<Tensor>& p) {
    return p[0] * x + 0.3 * torch::cat({x.slice(0, 1), torch::zeros_like(x.slice(0, 0, 1))}) * p[0].square();
  };
  const auto rmatvec = [](const Tensor& u, const std::vector<Tensor>& p) {
    const Tensor v = 0.3 * u * p[0].square();
    return p[0] * u + torch::cat({torch::zeros_like(v.slice(0, 0, 1)), v.slice(0, 0, -1)});
  };
  return {{6, 6}, matvec, {k}, transpose_given ? la::LinearOperator::Function(rmatvec) : nullptr};
}

}  // namespace

TEST(Krylov, MatricesWithGradients) {
  const auto symmetric = gs::poisson({4, 3}, f64);
  for (const Method method : {Method(la::cg), Method(la::minres)}) expect_same(method, symmetric, {.rtol = 1e-12});
  for (const Method method : {Method(la::gmres), Method(la::bicgstab), Method(la::lsmr)})
    expect_same(method, general(), {.rtol = 1e-12});
}

// With a nonsymmetric M the gradient needs Mᵀ: with M in its place it would take more than the one iteration.
TEST(Krylov, PreconditionersAndTheirTransposes) {
  const auto A = general();
  const auto factor = la::factorize(A.detach());
  const auto inverse = gs::from_dense(torch::linalg_inv(A.to_dense()));
  const auto function = la::preconditioner(12, [factor](const Tensor& r, bool t) { return factor.solve(r, t); });
  for (const auto& M : {la::preconditioner(factor), la::preconditioner(inverse), function}) {
    expect_same(la::gmres, A, {.rtol = 1e-12, .maxiter = 2, .M = M});
    expect_same(la::bicgstab, A, {.rtol = 1e-12, .maxiter = 2, .M = M});
  }
}

TEST(Krylov, ATransposeIsSolvedWithoutBuildingIt) {
  const auto A = general();
  const Tensor b = torch::randn(12, f64);
  EXPECT_TRUE(torch::allclose(la::gmres(A.T(), b).x, torch::linalg_solve(A.to_dense().t(), b)));
}

TEST(Krylov, OperatorsToTheSecondDerivative) {
  for (const bool transpose_given : {true, false})
    for (const OperatorMethod method :
         {OperatorMethod(la::gmres), OperatorMethod(la::bicgstab), OperatorMethod(la::lsmr)}) {
      torch::manual_seed(5);
      const Tensor k = (1 + torch::rand(6, f64)).requires_grad_(), b = torch::randn(6, f64).requires_grad_();
      const auto ours = [&] { return method(convection(k, transpose_given), b, {.rtol = 1e-13}).x; };
      const auto dense = [&] {
        const Tensor A = torch::diag(k) + 0.3 * torch::diag(k.square().slice(0, 0, 5), 1);
        return torch::linalg_solve(A, b);
      };
      std::vector<std::vector<Tensor>> seconds;
      for (const auto& x : {ours(), dense()}) {
        const auto first = torch::autograd::grad({x.sin().sum()}, {k, b}, {}, true, true);
        const auto second = torch::autograd::grad({first[0].cos().sum() + first[1].square().sum()}, {k, b});
        seconds.push_back({x, first[0], first[1], second[0], second[1]});
      }
      for (size_t i = 0; i < seconds[0].size(); ++i) EXPECT_TRUE(torch::allclose(seconds[0][i], seconds[1][i])) << i;
    }
}

TEST(Krylov, LeastSquaresOfOperatorsInAllShapes) {
  for (const auto& [rows, cols, damp] : {std::tuple{5, 3, 0.0}, {3, 5, 0.0}, {5, 3, 0.7}}) {
    torch::manual_seed(rows);
    const Tensor W = torch::randn({rows, cols}, f64).requires_grad_(), b = torch::randn(rows, f64);
    const la::LinearOperator A({rows, cols}, [](const Tensor& x, const auto& p) { return torch::mv(p[0], x); }, {W});
    const Tensor x = la::lsmr(A, b, {.rtol = 1e-13, .damp = damp}).x;
    const Tensor I = torch::eye(cols, f64);
    const Tensor y = damp == 0 ? torch::mv(torch::linalg_pinv(W), b)
                               : torch::linalg_solve(torch::mm(W.t(), W) + damp * damp * I, torch::mv(W.t(), b));
    EXPECT_TRUE(torch::allclose(x, y));
    const Tensor want = torch::autograd::grad({y.sin().sum()}, {W})[0];
    EXPECT_TRUE(torch::allclose(torch::autograd::grad({x.sin().sum()}, {W})[0], want));
    const Tensor D = W.detach(), normal = rows > cols ? torch::mm(D.t(), D) : torch::mm(D, D.t());
    const Tensor inverse = torch::linalg_inv(normal + 0.1 * torch::eye(3, f64));
    const auto M = la::preconditioner(3, [inverse](const Tensor& r, bool) { return torch::matmul(inverse, r); });
    const Tensor z = la::lsmr(A, b, {.rtol = 1e-13, .M = M, .damp = damp}).x;
    EXPECT_TRUE(torch::allclose(z, y));
    EXPECT_TRUE(torch::allclose(torch::autograd::grad({z.sin().sum()}, {W})[0], want));
  }
}

// One process without a group; tests/distributed has several. The bits are those of the matrix itself.
TEST(Krylov, MatricesWhoseRowsAreOnManyProcesses) {
  const auto A = gs::poisson({30, 30}, f64).requires_grad_();
  const auto D = gs::distributed::scatter(gs::poisson({30, 30}, f64), "").requires_grad_();
  const Tensor b = torch::randn({900}, f64);
  const auto [x, info] = la::cg(A, b);
  const auto [y, same] = la::cg(D, b);
  EXPECT_TRUE(torch::equal(x, y));
  EXPECT_TRUE(torch::equal(info.iterations, same.iterations));
  x.sin().sum().backward();
  y.sin().sum().backward();
  EXPECT_TRUE(torch::equal(A.grad()->values(), D.grad()->values()));
  const auto M = la::two_level(D, la::ichol(gs::distributed::own_block(D.detach())), 200);
  const auto few = la::cg(D.detach(), b, {.M = M});
  EXPECT_TRUE(torch::allclose(few.x, x, 1e-5, 1e-6));
  EXPECT_LT(few.info.iterations.item<int64_t>(), 30);
  EXPECT_EQ(gs::distributed::dot(b, b).item<double>(), gs::distributed::dot(b.flip(0), b.flip(0)).item<double>());
}

TEST(Krylov, CallbacksSeeEveryIterationAndMayThrow) {
  const auto A = gs::poisson({6, 6}, f64);
  const Tensor b = torch::randn(36, f64);
  std::vector<int64_t> seen;
  const auto [x, info] =
      la::cg(A, b, {.callback = [&](const la::KrylovInfo& now) { seen.push_back(now.iterations.item<int64_t>()); }});
  EXPECT_EQ(static_cast<int64_t>(seen.size()), info.iterations.item<int64_t>());
  EXPECT_EQ(seen.back(), static_cast<int64_t>(seen.size()));
  EXPECT_THROW(la::cg(A, b, {.callback = [](const la::KrylovInfo&) { throw std::runtime_error("enough"); }}),
               std::runtime_error);
}

TEST(Krylov, UnrolledIterationsDifferentiateThePreconditioner) {
  const auto A = gs::poisson({4, 4}, f64);
  const Tensor b = torch::randn(16, f64), d = torch::full({16}, 0.25, f64).requires_grad_();
  const auto loss = [&](const Tensor& scale) {
    const auto M = la::preconditioner(16, [scale](const Tensor& r, bool) { return scale * r; });
    const Tensor x = la::cg(A, b, {.maxiter = 3, .M = M, .unrolled = true}).x;
    return (b - A.matmul(x)).square().sum();
  };
  loss(d).backward();
  const Tensor step = torch::zeros(16, f64);
  step[5] = 1e-6;
  const double by_differences = ((loss(d.detach() + step) - loss(d.detach() - step)) / 2e-6).item<double>();
  EXPECT_NEAR(d.grad()[5].item<double>(), by_differences, 1e-6 * std::abs(by_differences));
}

TEST(Krylov, ErrorsSayHowFarItCame) {
  auto A = gs::poisson({20, 20}, f64).requires_grad_();
  const Tensor b = torch::ones(400, f64);
  EXPECT_THROW(la::cg(A, b, {.maxiter = 3}), gs::ConvergenceError);
  EXPECT_FALSE(la::cg(A, b, {.maxiter = 3, .check = false}).info.converged.item<bool>());
  const Tensor x = la::cg(A, b, {.rtol = 0.1, .maxiter = 40, .adjoint_rtol = 1e-13}).x;
  EXPECT_THROW((x * torch::arange(400, f64).sin()).sum().backward(), gs::ConvergenceError);
  EXPECT_EQ(message([&] { la::cg(gs::random({2, 3}, 1.0, {}, f64), torch::ones(2, f64)); }),
            "cg: the matrix must be square, not 2 x 3");
}
