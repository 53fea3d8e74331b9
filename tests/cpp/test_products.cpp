// SPDX-License-Identifier: BSD-3-Clause
// Products and sums of sparse matrices in C++, against dense torch, with gradients on the patterns.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace gs = gossamer;

namespace {

const auto f64 = torch::kFloat64;

gs::SparseMatrix sample(int64_t m, int64_t n, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return gs::random({m, n}, 0.4, generator, f64).requires_grad_();
}

torch::Tensor mask_of(const gs::SparseMatrix& A) {
  return A.with_values(torch::ones_like(A.values())).to_dense();
}

// Both gradients of Σ sin(result), ours and of the dense twins, must agree on the patterns.
template <class F, class G>
void expect_same(gs::SparseMatrix A, gs::SparseMatrix B, const F& ours, const G& dense) {
  const auto X = A.detach().to_dense().requires_grad_(), Y = B.detach().to_dense().requires_grad_();
  const gs::SparseMatrix C = ours(A, B);
  const torch::Tensor D = dense(X, Y);
  EXPECT_TRUE(torch::allclose(C.to_dense(), D));
  C.values().sin().sum().backward();
  D.sin().sum().backward();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), X.grad() * mask_of(A)));
  EXPECT_TRUE(torch::allclose(B.grad()->to_dense(), Y.grad() * mask_of(B)));
}

}  // namespace

TEST(Products, Product) {
  expect_same(
      sample(6, 5, 1), sample(5, 7, 2), [](auto& A, auto& B) { return gs::spgemm(A, B); },
      [](auto& X, auto& Y) { return X.mm(Y); });
}

TEST(Products, SumAndDifference) {
  expect_same(
      sample(6, 5, 1), sample(6, 5, 2), [](auto& A, auto& B) { return A + B; }, [](auto& X, auto& Y) { return X + Y; });
  expect_same(
      sample(6, 5, 3), sample(6, 5, 4), [](auto& A, auto& B) { return A - B; }, [](auto& X, auto& Y) { return X - Y; });
}

TEST(Products, SumsTakeNumbersAndTensors) {
  const auto alpha = torch::tensor(0.5, f64).requires_grad_();
  expect_same(
      sample(6, 5, 1), sample(6, 5, 2), [](auto& A, auto& B) { return gs::spadd(A, B); },
      [](auto& X, auto& Y) { return X + Y; });
  expect_same(
      sample(6, 5, 1), sample(6, 5, 2), [](auto& A, auto& B) { return gs::spadd(A, B, 2, -0.5); },
      [](auto& X, auto& Y) { return 2 * X - 0.5 * Y; });
  expect_same(
      sample(6, 5, 1), sample(6, 5, 2), [&](auto& A, auto& B) { return gs::spadd(A, B, alpha, 3); },
      [&](auto& X, auto& Y) { return alpha * X + 3 * Y; });
  const auto A = sample(6, 5, 1).detach();
  const auto dalpha = torch::autograd::grad({gs::spadd(A, A, 1, alpha).sum()}, {alpha})[0];
  EXPECT_TRUE(torch::allclose(dalpha, A.sum()));
}

// A number keeps the kind of a type, as in Python: integers times 2 are integers.
TEST(Products, OperatorsAreSpelledAsInPython) {
  const auto A = gs::poisson({3}, torch::kInt64), B = gs::eye(3, torch::kInt64);
  const auto D = A.to_dense(), E = B.to_dense();
  EXPECT_TRUE(torch::equal((2 * A - B * 3 + -A).to_dense(), D - 3 * E));
  EXPECT_TRUE(torch::equal((A * B).to_dense(), D * E));
  EXPECT_EQ((A * 2).dtype(), torch::kInt64);
  EXPECT_EQ((A * 2.5).dtype(), torch::kFloat32);
  EXPECT_TRUE(torch::equal((A / 2).to_dense(), D / 2));
  const auto C = A.to(f64) * c10::complex<double>(0, 1);
  EXPECT_EQ(C.dtype(), torch::kComplexDouble);
  const auto X = torch::ones({3, 2}, f64), F = A.to(f64).to_dense();
  EXPECT_TRUE(torch::equal(gs::matmul(A.to(f64), X), F.mm(X)) &&
              torch::equal(gs::matmul(X.t(), A.to(f64)), X.t().mm(F)));
  EXPECT_TRUE(torch::equal(gs::matmul(A.to(f64), A.to(f64)).to_dense(), F.mm(F)));
}

TEST(Products, EntrywiseProduct) {
  expect_same(
      sample(6, 5, 1), sample(6, 5, 2), [](auto& A, auto& B) { return gs::hadamard(A, B); },
      [](auto& X, auto& Y) { return X * Y; });
}

// The patterns are equal but not the same: no union is built, and the values meet entry by entry.
TEST(Products, EqualPatternsMeetEntryByEntry) {
  const auto A = sample(6, 5, 1), B = sample(6, 5, 1);
  EXPECT_TRUE(A.pattern().equals(B.pattern()) && !A.pattern().same_as(B.pattern()));
  EXPECT_FALSE(A.pattern().equals(sample(6, 5, 2).pattern()));
  EXPECT_TRUE((A + B).pattern().same_as(A.pattern()));
  expect_same(
      A, B, [](auto& X, auto& Y) { return gs::hadamard(X, Y) + X; }, [](auto& X, auto& Y) { return X * Y + X; });
}

TEST(Products, SymbolicWorkIsKeptForAPairOfPatterns) {
  const auto A = sample(6, 6, 1), B = sample(6, 6, 2);
  EXPECT_TRUE(A.pattern().product(B.pattern()).same_as(gs::spgemm(A, B).pattern()));
  const torch::NoGradGuard off;
  const auto first = A + B;  // in one pass, without maps, which the second finds
  EXPECT_TRUE(A.pattern().keeps("union pattern", B.pattern()) && !A.pattern().keeps("union", B.pattern()));
  EXPECT_TRUE(first.pattern().same_as((A - B).pattern()) && A.pattern().keeps("union", B.pattern()));
  EXPECT_TRUE(torch::equal(first.values(), (A + B).values()));
  EXPECT_FALSE(A.pattern().product(B.pattern()).same_as(A.pattern().product(A.pattern())));
}
