// SPDX-License-Identifier: BSD-3-Clause
// Sparse Jacobians, Hessians and roots from C++, against dense matrices that torch's reverse mode makes row by row.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "../message.h"

namespace gs = gossamer;
using torch::Tensor;
using torch::indexing::Slice;

namespace {

const auto f64 = torch::kFloat64;

// (n,) → (n - 1,): two entries a row, of which one is 0 at u = 0.
Tensor pairs(const Tensor& u) {
  return u.index({Slice(1)}).square() * 3 - u.index({Slice(torch::indexing::None, -1)}).sin();
}

// A ring: row i has the entries i and i + 1, the last one the first.
Tensor ring(const Tensor& u, const Tensor& a) {
  return a * u.pow(3) + u + u.roll(-1) * 0.3;
}

Tensor dense_jacobian(const gs::VectorFunction& f, const Tensor& x) {
  const Tensor z = x.detach().requires_grad_();
  const Tensor y = f(z);
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < y.size(0); ++i) rows.push_back(torch::autograd::grad({y[i]}, {z}, {}, true)[0]);
  return torch::stack(rows);
}

gs::Pattern bidiagonal(int64_t m) {
  const Tensor i = torch::arange(m);
  return gs::from_coo(torch::cat({i, i}), torch::cat({i, i + 1}), torch::ones(2 * m), {m, m + 1}).pattern();
}

}  // namespace

TEST(Jacobian, EqualsDense) {
  const Tensor x = torch::randn(40, f64);
  for (const char* mode : {"auto", "forward", "reverse"}) {
    auto J = gs::jacobian(pairs, bidiagonal(39), {.mode = mode});
    EXPECT_TRUE(torch::allclose(J(x).to_dense(), dense_jacobian(pairs, x)));
  }
}

TEST(Jacobian, PatternIsFound) {
  EXPECT_TRUE(gs::jacobian_pattern(pairs, torch::zeros(700, f64)) == bidiagonal(699));
  EXPECT_TRUE(gs::jacobian_pattern(pairs, torch::randn(700, torch::kFloat32)) == bidiagonal(699));
  EXPECT_TRUE(gs::jacobian_pattern(pairs, torch::randn(9, f64)) == bidiagonal(8));
  // One row that has them all, which takes a product from the left.
  const auto with_sum = [](const Tensor& u) { return torch::cat({pairs(u), u.square().sum().unsqueeze(0)}); };
  const auto P = gs::jacobian_pattern(with_sum, torch::randn(700, f64));
  EXPECT_EQ(P.nnz(), 2 * 699 + 700);
  EXPECT_EQ(P.index_type(), torch::kInt32);
}

TEST(Jacobian, KeepsThePatternWhenAsked) {
  const Tensor x = torch::randn(300, f64);
  auto J = gs::jacobian(pairs);
  J(x);
  EXPECT_FALSE(J.pattern().has_value());
  auto K = gs::jacobian(pairs, {}, {.keep_pattern = true});
  EXPECT_TRUE(K(x).pattern().same_as(K(x + 1).pattern()));
  EXPECT_TRUE(*K.pattern() == bidiagonal(299));
}

TEST(Jacobian, CanBeDifferentiated) {
  Tensor a = torch::rand(6, f64).requires_grad_(), x = torch::randn(6, f64).requires_grad_();
  const auto f = [&](const Tensor& u) { return ring(u, a); };
  const auto J = gs::jacobian(f)(x);
  // Σ J² over the entries 3 a x² + 1 and 0.3.
  J.values().square().sum().backward();
  const Tensor diagonal = (3 * a * x.square() + 1).detach();
  EXPECT_TRUE(torch::allclose(a.grad(), (2 * diagonal * 3 * x.square()).detach()));
  EXPECT_TRUE(torch::allclose(x.grad(), (2 * diagonal * 6 * a * x).detach()));
}

TEST(Jacobian, Hessian) {
  const auto f = [](const Tensor& u) {
    return (u.index({Slice(1)}) * u.index({Slice(torch::indexing::None, -1)}).square()).sum();
  };
  const Tensor x = torch::randn(50, f64);
  const auto gradient = [&](const Tensor& u) { return torch::autograd::grad({f(u)}, {u}, {}, true, true)[0]; };
  const auto H = gs::hessian(f)(x);
  EXPECT_TRUE(torch::allclose(H.to_dense(), dense_jacobian(gradient, x)));
  EXPECT_TRUE(H.pattern() == H.pattern().T());
}

TEST(Jacobian, Mistakes) {
  const Tensor x = torch::randn(5, f64);
  const auto diagonal = gs::eye(5, f64).pattern();
  const auto neighbours = [](const Tensor& u) { return u + u.roll(1).square(); };
  EXPECT_EQ(message([&] { gs::jacobian(neighbours, diagonal)(x); }),
            "jacobian: the pattern is too small: row 0 has other entries than the 1 it stores");
  EXPECT_EQ(message([&] { gs::jacobian([](const Tensor& u) { return u.sum(); }, diagonal)(x); }),
            "jacobian: f must return a vector (m,), not shape ()");
  EXPECT_EQ(message([&] { gs::jacobian(pairs, diagonal)(x); }),
            "jacobian: the pattern is 5 x 5, but f gives 4 numbers");
  EXPECT_EQ(message([&] { gs::jacobian(pairs, diagonal)(torch::randn(6, f64)); }),
            "jacobian: the pattern is 5 x 5, but x has 6 elements");
  EXPECT_EQ(message([&] { gs::jacobian([](const Tensor& u) { return u.sqrt(); }, diagonal)(torch::zeros(5, f64)); }),
            "jacobian: the derivatives of f in row 0 are not finite at x");
  EXPECT_THROW(gs::jacobian(pairs, {}, {.mode = "sideways"}), c10::ValueError);
  EXPECT_THROW(gs::jacobian_pattern(pairs, torch::arange(5)), c10::TypeError);
  EXPECT_EQ(message([&] { gs::hessian(pairs)(x); }), "hessian: f must return a number, a tensor of shape (), not (4,)");
}

TEST(Jacobian, Root) {
  Tensor a = torch::rand(8, f64).requires_grad_(), b = torch::randn(8, f64).requires_grad_();
  const auto f = [](const Tensor& u, torch::TensorList p) { return ring(u, p[0]) - p[1]; };
  const auto [x, info] = gs::linalg::root(f, torch::zeros(8, f64), {a, b});
  EXPECT_TRUE(info.converged);
  EXPECT_LT((ring(x, a) - b).norm().item<double>(), 1e-9);
  EXPECT_GT(info.iterations, 1);

  // Gradient and second derivative against differences.
  const auto loss = [&](const Tensor& p, const Tensor& q) {
    return gs::linalg::root(f, torch::zeros(8, f64), {p, q}, {}, {.rtol = 1e-14}).x.square().sum();
  };
  const auto gradient = [&](const Tensor& p) {
    const Tensor z = p.detach().requires_grad_();
    return torch::autograd::grad({loss(z, b)}, {z})[0];
  };
  const Tensor e = torch::randn(8, f64), h = torch::full({}, 1e-5, f64);
  const auto grads = torch::autograd::grad({loss(a, b)}, {a, b}, {}, true, /*create_graph=*/true);
  const torch::NoGradGuard constant;
  EXPECT_NEAR(grads[0].dot(e).item<double>(), ((loss(a + h * e, b) - loss(a - h * e, b)) / (2 * h)).item<double>(),
              1e-7);
  EXPECT_NEAR(grads[1].dot(e).item<double>(), ((loss(a, b + h * e) - loss(a, b - h * e)) / (2 * h)).item<double>(),
              1e-7);
  const torch::AutoGradMode on(true);
  const Tensor second = torch::autograd::grad({grads[0].dot(e)}, {a})[0];
  EXPECT_TRUE(torch::allclose(second, (gradient(a + h * e) - gradient(a - h * e)) / (2 * h), 1e-5, 1e-7));
}

TEST(Jacobian, RootThatIsNotThere) {
  const auto f = [](const Tensor& u, torch::TensorList) { return u.square() + 1; };
  EXPECT_THROW(gs::linalg::root(f, torch::ones(3, f64)), gs::ConvergenceError);
  const auto g = [](const Tensor& u, torch::TensorList) { return u.exp() - 2; };
  EXPECT_THROW(gs::linalg::root(g, torch::ones(3, f64), {}, {}, {.maxiter = 1}), gs::ConvergenceError);
  EXPECT_EQ(message([] {
              gs::linalg::root([](const Tensor& u, torch::TensorList) { return u.sum(); }, torch::ones(3, f64));
            }),
            "root: f must return as many numbers as x has, (3,), not ()");
}
