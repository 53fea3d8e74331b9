// SPDX-License-Identifier: BSD-3-Clause
// Matrices in C++ against dense torch: construction, sparse times dense, gradients, errors. No Python in the process.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include "message.h"

namespace gs = gossamer;

namespace {

const auto f64 = torch::kFloat64;

gs::SparseMatrix example() {
  const auto rows = torch::tensor({2, 0, 2, 1, 2}), cols = torch::tensor({1, 3, 1, 0, 2});
  return gs::from_coo(rows, cols, torch::tensor({1.0, 2.0, 3.0, 4.0, 5.0}, f64), {3, 4});
}

}  // namespace

TEST(Matrix, FromCooSortsAndAddsDuplicates) {
  const auto A = example();
  EXPECT_EQ(A.nnz(), 4);
  EXPECT_EQ(A.pattern().indices().scalar_type(), torch::kInt32);
  const auto D = torch::tensor({{0.0, 0.0, 0.0, 2.0}, {4.0, 0.0, 0.0, 0.0}, {0.0, 4.0, 5.0, 0.0}}, f64);
  EXPECT_TRUE(torch::equal(A.to_dense(), D));
  EXPECT_TRUE(torch::equal(gs::from_dense(D).to_dense(), D));
  EXPECT_TRUE(torch::equal(gs::from_torch(D.to_sparse_csr()).to_dense(), D));
  EXPECT_TRUE(torch::equal(gs::from_torch(D.to_sparse_csc()).to_dense(), D));
  EXPECT_TRUE(torch::equal(gs::from_torch(D.to_sparse()).to_dense(), D));
  EXPECT_TRUE(torch::equal(A.to_torch().to_dense(), D));
  EXPECT_TRUE(torch::equal(A.T().to_dense(), D.t()));
}

TEST(Matrix, Generators) {
  EXPECT_TRUE(torch::equal(gs::eye(3, 2).to_dense(), torch::eye(3, 2)));
  const auto A1 = gs::poisson({3}).to_dense(), I = torch::eye(4), A2 = gs::poisson({4}).to_dense();
  EXPECT_TRUE(torch::equal(gs::poisson({3, 4}).to_dense(), torch::kron(A1, I) + torch::kron(torch::eye(3), A2)));
  EXPECT_EQ(gs::random({20, 30}, 0.1).nnz(), 60);
  const auto edges = torch::tensor({{0, 1, 1}, {2, 2, 0}});
  const auto G = gs::from_edge_index(edges).to_dense();
  EXPECT_EQ(G.index({2, 0}).item<float>() + G.index({2, 1}).item<float>() + G.index({0, 1}).item<float>(), 3);
}

// As Python rounds: halves to the even neighbour.
TEST(Matrix, RandomRoundsTheNumberOfEntriesAsPythonDoes) {
  EXPECT_EQ(gs::random({5, 1}, 0.5).nnz(), 2);
  EXPECT_EQ(gs::random({7, 1}, 0.5).nnz(), 4);
}

TEST(Matrix, ReprIsPythons) {
  EXPECT_EQ(gs::poisson({30, 30}, f64).repr(), "SparseMatrix(900 x 900, nnz=4380, float64, int32, cpu)");
  auto heads = example().with_values(torch::ones({4, 2}, torch::kBFloat16)).requires_grad_();
  EXPECT_EQ(heads.repr(), "SparseMatrix(3 x 4, nnz=4, heads=2, bfloat16, int32, cpu, requires_grad=True)");
}

TEST(Matrix, StreamsSayTheIndexType) {
  std::ostringstream text;
  text << gs::eye(2) << ' ' << gs::eye(2, f64).with_index_type(torch::kInt64).pattern();
  EXPECT_EQ(text.str(), "SparseMatrix(2 x 2, nnz=2, float32, int32, cpu) Pattern(2 x 2, nnz=2, int64, cpu)");
}

// A member of a struct, before it gets its matrix.
TEST(Matrix, TheDefaultIsEmpty) {
  struct Problem {
    gs::SparseMatrix A;
    gs::Pattern P;
  } problem;
  EXPECT_EQ(problem.A.repr(), "SparseMatrix(0 x 0, nnz=0, float32, int32, cpu)");
  EXPECT_TRUE(problem.A.pattern() == problem.P);
  EXPECT_EQ(problem.A.matmul(torch::ones({0, 3})).size(1), 3);
  EXPECT_EQ(problem.A.sum().item<float>(), 0);
  problem.A = example();
  EXPECT_EQ(problem.A.nnz(), 4);
}

TEST(Matrix, ATemporaryThatWantsAGradientOutlivesItsStatement) {
  static_assert(std::is_same_v<decltype(example().requires_grad_()), gs::SparseMatrix>);
  const auto& A = example().requires_grad_();  // a reference would dangle; the sanitizers would say so
  A.matmul(torch::ones(4, f64)).sum().backward();
  EXPECT_TRUE(torch::equal(A.grad()->values(), torch::ones(4, f64)));
  auto B = example();
  EXPECT_EQ(&B.requires_grad_(), &B);
  EXPECT_FALSE(B.requires_grad_(false).requires_grad());
}

TEST(Matrix, OtherTypesAndIndexTypes) {
  const auto A = example();
  EXPECT_EQ(A.to(torch::kFloat32).dtype(), torch::kFloat32);
  EXPECT_EQ(A.to(torch::kCPU, torch::kComplexDouble).dtype(), torch::kComplexDouble);
  const auto wide = A.with_index_type(torch::kInt64);
  EXPECT_EQ(wide.indptr().scalar_type(), torch::kInt64);
  EXPECT_EQ(wide.indices().scalar_type(), torch::kInt64);
  EXPECT_TRUE(wide.pattern() == A.pattern() && !wide.pattern().equals(A.pattern()));
  EXPECT_TRUE(wide.with_index_type(torch::kInt32).pattern().equals(A.pattern()));
  EXPECT_FALSE(A.pattern() == A.T().pattern());
  EXPECT_EQ(message([&] { A.with_index_type(torch::kFloat32); }),
            "with_index_type: an index type is torch::kInt32 or torch::kInt64, not Float");
  const gs::Pattern huge(torch::tensor({0, 0}), torch::zeros({0}, torch::kInt64), {1, int64_t{1} << 40});
  EXPECT_EQ(message([&] { huge.with_index_type(torch::kInt32); }),
            "with_index_type: 1 x 1099511627776 with 0 entries does not fit int32");
}

TEST(Matrix, RandomAndEyeTakeWhatPythonsTake) {
  EXPECT_EQ(gs::random(20, 30).nnz(), 6);
  EXPECT_EQ(gs::random(20, 30, 0.1, f64).dtype(), f64);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(7), again = at::make_generator<at::CPUGeneratorImpl>(7);
  EXPECT_TRUE(torch::equal(gs::random(9, 9, 0.5, generator).to_dense(), gs::random({9, 9}, 0.5, again).to_dense()));
  EXPECT_TRUE(torch::equal(gs::eye(3, f64).to_dense(), torch::eye(3, f64)));
}

TEST(Matrix, VersionAndConfiguration) {
  const std::string version = std::to_string(GOSSAMER_VERSION_MAJOR) + "." + std::to_string(GOSSAMER_VERSION_MINOR) +
                              "." + std::to_string(GOSSAMER_VERSION_PATCH);
  EXPECT_EQ(version, GOSSAMER_VERSION);
  EXPECT_EQ(gs::show_config().find("gossamer: " GOSSAMER_VERSION "\n"), 0);
}

TEST(Matrix, ProductsAndGradients) {
  auto A = example().requires_grad_();
  const auto D = A.detach().to_dense().requires_grad_();
  const auto X = torch::randn({4, 5}, f64).requires_grad_(), X2 = X.detach().clone().requires_grad_();
  const auto weight = torch::randn({3, 5}, f64);
  (gs::spmm(A, X) * weight).sum().backward();
  (D.mm(X2) * weight).sum().backward();
  EXPECT_TRUE(torch::allclose(X.grad(), X2.grad()));
  ASSERT_TRUE(A.grad().has_value());
  const auto mask = A.with_values(torch::ones_like(A.values())).to_dense();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense().detach(), D.grad() * mask));

  const auto left = torch::randn({2, 3}, f64);
  EXPECT_TRUE(torch::allclose(A.rmatmul(left), left.mm(D)));
  const auto y = torch::randn(3, f64);
  EXPECT_TRUE(torch::allclose(gs::spmm(A, y, true), D.t().mv(y)));
  const auto P = gs::sddmm(A.pattern(), torch::ones({3, 2}, f64), torch::ones({4, 2}, f64));
  EXPECT_TRUE(torch::equal(P.to_dense(), 2 * mask));
}

TEST(Matrix, ATransposeCostsNothingUntilItsValuesAreAskedFor) {
  const auto A = gossamer::poisson({4, 5}, torch::kFloat64)
                     .with_values(torch::rand({gossamer::poisson({4, 5}).nnz()}, torch::kFloat64))
                     .requires_grad_();
  const torch::Tensor x = torch::rand({20}, torch::kFloat64), dense = A.to_dense();
  const auto T = A.T();
  ASSERT_TRUE(T.original().has_value());
  EXPECT_TRUE(torch::allclose(T.matmul(x), dense.t().mv(x)));
  EXPECT_TRUE(torch::allclose(T.rmatmul(x), dense.mv(x)));
  EXPECT_TRUE(torch::allclose(gossamer::linalg::solve(T, x), torch::linalg_solve(dense.t(), x)));
  EXPECT_TRUE(
      torch::allclose(gossamer::linalg::factorize(T).solve(x, /*transpose=*/true), torch::linalg_solve(dense, x)));
  EXPECT_TRUE(torch::allclose(gossamer::linalg::solve_triangular(T, x, /*upper=*/true),
                              torch::linalg_solve(dense.t().triu(), x)));
  EXPECT_TRUE(torch::allclose(T.matmul(T).to_dense(), dense.t().mm(dense.t())));
  EXPECT_TRUE(T.original().has_value());  // nobody has asked
  EXPECT_TRUE(T.T().values().is_same(A.values()));

  torch::Tensor once;
  {
    const torch::NoGradGuard guard;
    once = T.to_dense();  // asks, but the values are those of a time with gradients
  }
  EXPECT_FALSE(T.original().has_value());
  EXPECT_TRUE(torch::equal(once, dense.t()));
  T.matmul(x).sum().backward();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), (dense != 0) * x.unsqueeze(1)));
  EXPECT_EQ(gossamer::eye(3, 5).T().shape(), (gossamer::Shape{5, 3}));
}

TEST(Matrix, SecondDerivative) {
  auto A = example().requires_grad_();
  const auto x = torch::randn(4, f64).requires_grad_();
  const auto first = torch::autograd::grad({A.matmul(x).pow(3).sum()}, {x}, {}, true, true)[0];
  const auto second = torch::autograd::grad({first.square().sum()}, {x})[0];
  const auto D = A.detach().to_dense(), z = x.detach().clone().requires_grad_();
  const auto first_dense = torch::autograd::grad({D.mv(z).pow(3).sum()}, {z}, {}, true, true)[0];
  EXPECT_TRUE(torch::allclose(second, torch::autograd::grad({first_dense.square().sum()}, {z})[0]));
}

TEST(Matrix, ErrorsNameTheOpTheArgumentAndBothSizes) {
  const auto A = example();
  EXPECT_EQ(message([&] { A.matmul(torch::ones(3, f64)); }), "spmm: X has 3 rows but A has 4 columns");
  EXPECT_EQ(message([&] { A.matmul(torch::ones(4)); }), "spmm: X is Float but values is Double");
  EXPECT_EQ(message([&] { A.with_values(torch::ones(3)); }),
            "SparseMatrix: values has shape (3,) but the pattern has 4 entries");
  EXPECT_EQ(message([&] { gs::Pattern(torch::tensor({0, 2}), torch::tensor({1, 1}), {1, 2}); }),
            "Pattern: column 1 in row 0 appears twice");
}

TEST(Matrix, PatternsAreShared) {
  const auto A = example();
  EXPECT_TRUE(A.T().pattern().same_as(A.T().pattern()));
  EXPECT_TRUE(A.T().T().pattern().same_as(A.pattern()));
  EXPECT_TRUE(A.with_values(A.values() * 2).pattern().same_as(A.pattern()));
  const auto B = example();
  EXPECT_EQ(B.pattern().tensors().size(), 2);
  gs::spmm(B, torch::ones(3, f64), true);
  EXPECT_EQ(B.pattern().tensors().size(), 5);  // the transpose was built once and kept
}
