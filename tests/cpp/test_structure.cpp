// SPDX-License-Identifier: BSD-3-Clause
// Structure, reductions and elementwise functions in C++, against dense torch.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace gs = gossamer;

namespace {

const auto f64 = torch::kFloat64;

gs::SparseMatrix example() {
  return gs::from_dense(
      torch::tensor({{1.0, 0.0, 2.0, 0.0}, {0.0, 0.0, -3.0, 4.0}, {5.0, 0.0, 0.0, -6.0}}, torch::dtype(f64)));
}

bool same(const gs::SparseMatrix& A, const torch::Tensor& dense) {
  gs::Pattern(A.pattern().indptr(), A.pattern().indices(), A.shape());  // checks itself
  return torch::equal(A.to_dense(), dense);
}

}  // namespace

TEST(Structure, PartsEqualDense) {
  const auto A = example();
  const auto D = A.to_dense();
  for (const int k : {-5, -1, 0, 1, 9}) {
    EXPECT_TRUE(same(gs::tril(A, k), D.tril(k))) << k;
    EXPECT_TRUE(same(gs::triu(A, k), D.triu(k))) << k;
  }
  EXPECT_TRUE(gs::tril(A).pattern().same_as(gs::tril(A).pattern()));  // made once and kept
  EXPECT_TRUE(torch::equal(gs::diagonal(A), D.diagonal()));
  EXPECT_TRUE(torch::equal(gs::diagonal(A, 1), D.diagonal(1)));
  EXPECT_EQ(gs::diagonal(A, 10).numel(), 0);
  EXPECT_EQ(gs::trace(A).item<double>(), 1.0);
  EXPECT_EQ(gs::entry(A, -1, 3).item<double>(), -6.0);
  EXPECT_EQ(gs::entry(A, 0, 1).item<double>(), 0.0);
  const auto rows = torch::tensor({2, 0, 2}), cols = torch::tensor({3, 0, -1, 2});
  EXPECT_TRUE(same(gs::submatrix(A, rows, cols), D.index_select(0, rows).index_select(1, torch::tensor({3, 0, 3, 2}))));
  EXPECT_TRUE(same(gs::submatrix(A, torch::tensor({true, false, true})), D.index_select(0, torch::tensor({0, 2}))));
  using torch::indexing::Slice;
  EXPECT_TRUE(same(gs::slice(A, Slice(1, -1), Slice({}, {}, 2)), D.index({Slice(1, -1), Slice({}, {}, 2)})));
  EXPECT_THROW(gs::submatrix(A, torch::tensor({3})), c10::IndexError);
}

TEST(Structure, PutTogetherEqualsDense) {
  const auto A = example();
  const auto D = A.to_dense();
  EXPECT_TRUE(same(gs::kron(A, A), torch::kron(D, D)));
  EXPECT_TRUE(same(gs::vstack({A, A}), torch::vstack({D, D})));
  EXPECT_TRUE(same(gs::hstack({A, A, A}), torch::hstack({D, D, D})));
  EXPECT_TRUE(same(gs::block_diag({A, A}), torch::block_diag({D, D})));
  EXPECT_TRUE(same(gs::diag(torch::ones(3), -1), torch::diag(torch::ones(3), -1)));
}

TEST(Structure, ReductionsAndElementwiseEqualDense) {
  const auto A = example();
  const auto D = A.to_dense(), d = torch::tensor({1.0, 2.0, 3.0}, f64), e = torch::tensor({1.0, 2.0, 3.0, 4.0}, f64);
  EXPECT_TRUE(torch::equal(gs::sum(A, 0), D.sum(0)) && torch::equal(gs::sum(A, 1), D.sum(1)));
  EXPECT_TRUE(torch::equal(gs::sum(A), D.sum()));
  EXPECT_TRUE(torch::allclose(gs::mean(A, 1), D.mean(1)));
  EXPECT_TRUE(torch::equal(gs::amax(A, 0), D.amax(0)) && torch::equal(gs::amax(A), D.amax()));
  EXPECT_TRUE(torch::allclose(gs::norm(A), D.norm()));
  EXPECT_TRUE(torch::allclose(gs::sum(gs::row_softmax(A), 1), torch::ones(3, f64)));
  EXPECT_TRUE(same(2 * -A / 4.0, -D / 2));
  EXPECT_TRUE(same(A * d[1], D * 2) && same(A / d[1], D / 2));
  EXPECT_TRUE(same(gs::pow(gs::abs(A), 2), D * D));
  EXPECT_TRUE(same(gs::map(A, [](const torch::Tensor& v) { return v.sinh(); }), D.sinh()));
  EXPECT_TRUE(same(gs::scale_rows(A, d), D * d.unsqueeze(1)) && same(gs::scale_cols(A, e), D * e));
  EXPECT_TRUE(gs::allclose(A, gs::from_dense(D + 1e-12)) && !gs::allclose(A, gs::tril(A)));
}

TEST(Structure, MethodsAreTheFunctions) {
  const auto A = example();
  const auto D = A.to_dense(), d = torch::tensor({1.0, 2.0, 3.0}, f64), e = torch::tensor({1.0, 2.0, 3.0, 4.0}, f64);
  EXPECT_TRUE(torch::equal(A.diagonal(1), D.diagonal(1)) && torch::equal(A.trace(), D.diagonal().sum()));
  EXPECT_TRUE(same(A.tril(), D.tril()) && same(A.triu(1), D.triu(1)));
  EXPECT_TRUE(torch::equal(A.sum(0), D.sum(0)) && torch::allclose(A.mean(1), D.mean(1)));
  EXPECT_TRUE(torch::equal(A.amax(1), D.amax(1)) && torch::allclose(A.norm(), D.norm()));
  EXPECT_TRUE(gs::allclose(A.row_softmax(), gs::row_softmax(A)));
  EXPECT_TRUE(same(A.abs(), D.abs()) && same(A.pow(3), D.pow(3)));
  EXPECT_TRUE(same(A.scale_rows(d), D * d.unsqueeze(1)) && same(A.scale_cols(e), D * e));
  EXPECT_TRUE(same(A.map([](const torch::Tensor& v) { return v.sinh(); }), D.sinh()));
  EXPECT_TRUE(same(A.matmul(A.T()), D.mm(D.t())) && same(A.hadamard(A), D * D) && same(A * A, D * D));
  EXPECT_EQ(A.index(2, 0).item<double>(), 5.0);
  const auto rows = torch::tensor({2, 0});
  EXPECT_TRUE(same(A.index(rows), D.index_select(0, rows)));
  using torch::indexing::Slice;
  EXPECT_TRUE(same(A.index(Slice(1, 3), Slice(0, 2)), D.index({Slice(1, 3), Slice(0, 2)})));
}

TEST(Structure, GradientsReachTheValues) {
  auto A = example().requires_grad_();
  (gs::tril(A).to_dense().sum() + gs::sum(gs::kron(A, A)) + gs::amax(A)).backward();
  const auto D = A.detach().to_dense().requires_grad_();
  (D.tril().sum() + torch::kron(D, D).sum() + D.amax()).backward();
  const auto mask = A.with_values(torch::ones_like(A.values())).to_dense();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), D.grad() * mask));
}
