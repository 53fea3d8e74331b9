// SPDX-License-Identifier: BSD-3-Clause
// Structure, reductions and elementwise functions in C++, against dense torch.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "message.h"

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
    EXPECT_TRUE(same(A.tril(k), D.tril(k))) << k;
    EXPECT_TRUE(same(A.triu(k), D.triu(k))) << k;
  }
  EXPECT_TRUE(A.tril().pattern().same_as(A.tril().pattern()));  // made once and kept
  EXPECT_TRUE(torch::equal(A.diagonal(), D.diagonal()));
  EXPECT_TRUE(torch::equal(A.diagonal(1), D.diagonal(1)));
  EXPECT_EQ(A.diagonal(10).numel(), 0);
  EXPECT_EQ(A.trace().item<double>(), 1.0);
}

TEST(Structure, IndexIsPairByPairAndSubmatrixIsEveryRowByEveryColumn) {
  const auto A = example();
  const auto D = A.to_dense();
  EXPECT_EQ(A.index(-1, 3).item<double>(), -6.0);
  EXPECT_EQ(A.index(0, 1).item<double>(), 0.0);
  const auto rows = torch::tensor({2, 0, 2}), cols = torch::tensor({3, 0, -1});
  EXPECT_TRUE(torch::equal(A.index(rows, cols), D.index({rows, cols})));
  EXPECT_TRUE(same(A.submatrix(rows, cols), D.index({rows.unsqueeze(1), cols})));
  EXPECT_TRUE(same(A.submatrix({}, cols), D.index({torch::indexing::Slice(), cols})));
  EXPECT_TRUE(same(A.submatrix(torch::tensor({true, false, true})), D.index_select(0, torch::tensor({0, 2}))));
  EXPECT_THROW(A.submatrix(torch::tensor({3})), c10::IndexError);
  EXPECT_TRUE(torch::equal(A.index(rows, torch::tensor({0})), D.index({rows, torch::tensor({0})})));
  EXPECT_THROW(A.index(rows, torch::tensor({0, 1})), c10::IndexError);
}

// Two integers and two arrays of one dimension are numbers, everything else is a matrix: the types say so.
TEST(Structure, IndexTakesWhatTorchTakes) {
  using torch::indexing::Ellipsis;
  using torch::indexing::Slice;
  const auto A = example();
  const auto D = A.to_dense();
  const auto rows = torch::tensor({2, 0, 2}), cols = torch::tensor({3, 0, -1});
  const auto mask = torch::tensor({true, false, true, true});
  const int64_t i = 1;
  static_assert(std::is_same_v<decltype(A.index({1, 2})), torch::Tensor>);
  static_assert(std::is_same_v<decltype(A[1]), gs::SparseMatrix>);
  EXPECT_EQ(A.index({1, 2}).item<double>(), -3.0);
  EXPECT_EQ(A.index({i, -1}).item<double>(), 4.0);
  EXPECT_EQ(A.index(torch::tensor(1), torch::tensor(2)).item<double>(), -3.0);
  EXPECT_TRUE(same(A[i], D.slice(0, 1, 2)) && same(A[-1], D.slice(0, 2, 3)) && same(A[0], D.slice(0, 0, 1)));
  EXPECT_TRUE(same(A[Slice(1, 3)], D.slice(0, 1, 3)) && same(A[rows], D.index({rows})));
  EXPECT_TRUE(same(A.index({i, Slice(1)}), D.index({Slice(1, 2), Slice(1)})));
  EXPECT_TRUE(same(A.index({Slice(), 2}), D.slice(1, 2, 3)) && same(A.index({"...", 2}), D.slice(1, 2, 3)));
  EXPECT_TRUE(same(A.index({Slice(0, 2), cols}), D.index({Slice(0, 2), cols})));
  EXPECT_TRUE(same(A.index({rows, Slice(1, 4, 2)}), D.index({rows, Slice(1, 4, 2)})));
  EXPECT_TRUE(same(A.index({rows, 2}), D.index({rows}).slice(1, 2, 3)) &&
              same(A.index(0, cols), D.index({Slice(0, 1), cols})));
  EXPECT_TRUE(same(A.index({Slice(), mask}), D.index({Slice(), mask})));
  EXPECT_TRUE(same(A.index({rows}), D.index({rows})) && same(A.index({Ellipsis}), D) && same(A.index({Slice()}), D));
  EXPECT_TRUE(same(A.index(Slice(0, 2), cols), D.index({Slice(0, 2), cols})));
  const std::vector<torch::indexing::TensorIndex> key = {rows, Slice(1, 3)};
  EXPECT_TRUE(same(A.index(key), D.index({rows, Slice(1, 3)})));
}

TEST(Structure, ArraysOfTwoDimensionsBroadcast) {
  const auto A = example();
  const auto D = A.to_dense();
  const auto rows = torch::tensor({2, 0, 2}), cols = torch::tensor({3, 0, -1, 2});
  const auto r2 = torch::tensor({{0, 2, 1}, {-1, 0, 0}}), c2 = torch::tensor({{0, 3, 2}, {0, 1, 2}});
  EXPECT_TRUE(same(A.index({rows.unsqueeze(1), cols}), D.index({rows.unsqueeze(1), cols})));
  EXPECT_TRUE(same(A.index({rows.unsqueeze(1), cols.unsqueeze(0)}), D.index({rows.unsqueeze(1), cols})));
  EXPECT_TRUE(same(A.index({r2, c2}), D.index({r2, c2})));
  EXPECT_TRUE(same(A.index({r2, torch::tensor({3, 0, 2})}), D.index({r2, torch::tensor({3, 0, 2})})));
  EXPECT_TRUE(same(A.index({rows, c2}), D.index({rows, c2})));
  EXPECT_TRUE(same(A.index({rows.unsqueeze(0), cols.unsqueeze(1)}), D.index({rows.unsqueeze(0), cols.unsqueeze(1)})));
}

TEST(Structure, IndexSaysHowTheOtherKindIsSpelled) {
  using torch::indexing::None;
  using torch::indexing::Slice;
  const auto A = example();
  const auto rows = torch::tensor({2, 0}), r2 = torch::tensor({{0, 2}, {1, 1}});
  EXPECT_EQ(message([&] { A.index({rows, rows}); }),
            "index: two arrays of one dimension are entries, pair by pair, a tensor: A.index(rows, cols) gives it, "
            "A.submatrix(rows, cols) every row by every column");
  EXPECT_EQ(message([&] { A.index(r2, rows); }),
            "index: rows (2, 2) and cols (2,) give a matrix: A.index({rows, cols})");
  EXPECT_EQ(message([&] { A.index({2}); }), "index: {2} is a row, a matrix: A[2] gives it");
  EXPECT_EQ(message([&] { A.index({Slice(), None}); }),
            "index: cols must be integers, a slice, an array or a mask, not None");
  EXPECT_EQ(message([&] { A.index({true, Slice()}); }),
            "index: rows must be integers, a slice, an array or a mask, not bool");
  EXPECT_EQ(message([&] { A.index({r2, torch::tensor({0, 1, 2})}); }),
            "index: rows (2, 2) and cols (3,) do not broadcast to one shape");
  EXPECT_EQ(message([&] { A.index({Slice(), Slice(), 1}); }), "index: a matrix has 2 axes, not 3");
  EXPECT_EQ(message([&] { A[3]; }), "index: rows[0] is 3, outside -3 … 2");
  EXPECT_EQ(message([&] { A.index({Slice(), torch::Tensor()}); }), "index: cols is a tensor that is not defined");
}

TEST(Structure, SlicesStepForwardsAndBackwards) {
  using torch::indexing::None;
  using torch::indexing::Slice;
  const auto A = example();
  const auto D = A.to_dense();
  EXPECT_TRUE(same(A.index(Slice(1, -1), Slice(None, None, 2)), D.index({Slice(1, -1), Slice(None, None, 2)})));
  EXPECT_TRUE(same(A.index(Slice()), D));
  EXPECT_TRUE(same(A.index(Slice(None, None, -1), Slice(None, None, -2)),
                   D.flip({0, 1}).index({Slice(), Slice(None, None, 2)})));
  EXPECT_TRUE(same(A.index(Slice(-1, 0, -1)), D.flip(0).index({Slice(0, 2)})));
  EXPECT_TRUE(same(A.index(Slice(9, -9, -2)), D.index_select(0, torch::tensor({2, 0}))));
  EXPECT_EQ(A.index(Slice(0, 2, -1)).rows(), 0);
  EXPECT_EQ(A.index(Slice(2, 0)).rows(), 0);
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
  EXPECT_TRUE(torch::equal(A.sum(0), D.sum(0)) && torch::equal(A.sum(1), D.sum(1)));
  EXPECT_TRUE(torch::equal(A.sum(), D.sum()));
  EXPECT_TRUE(torch::allclose(A.mean(1), D.mean(1)));
  EXPECT_TRUE(torch::equal(A.amax(0), D.amax(0)) && torch::equal(A.amax(), D.amax()));
  EXPECT_TRUE(torch::allclose(A.norm(), D.norm()));
  EXPECT_TRUE(torch::allclose(A.row_softmax().sum(1), torch::ones(3, f64)));
  EXPECT_TRUE(same(2 * -A / 4.0, -D / 2));
  EXPECT_TRUE(same(A * d[1], D * 2) && same(A / d[1], D / 2));
  EXPECT_TRUE(same(A.abs().pow(2), D * D));
  // torch rounds sinh in another way where fewer numbers are left than its vectors have.
  EXPECT_TRUE(torch::allclose(A.map([](const torch::Tensor& v) { return v.sinh(); }).to_dense(), D.sinh()));
  EXPECT_TRUE(same(A.scale_rows(d), D * d.unsqueeze(1)) && same(A.scale_cols(e), D * e));
  EXPECT_TRUE(gs::allclose(A, gs::from_dense(D + 1e-12)) && !gs::allclose(A, A.tril()));
}

TEST(Structure, GradientsReachTheValues) {
  auto A = example().requires_grad_();
  (A.tril().to_dense().sum() + gs::kron(A, A).sum() + A.amax()).backward();
  const auto D = A.detach().to_dense().requires_grad_();
  (D.tril().sum() + torch::kron(D, D).sum() + D.amax()).backward();
  const auto mask = A.with_values(torch::ones_like(A.values())).to_dense();
  EXPECT_TRUE(torch::allclose(A.grad()->to_dense(), D.grad() * mask));
}

TEST(Structure, HeadsAreScaledEachByItsNumber) {
  const auto A = example();
  const auto values = torch::stack({A.values(), -A.values()}, 1),
             by_head = torch::tensor({2.0, 5.0}, torch::dtype(f64));
  const auto heads = A.with_values(values);
  EXPECT_TRUE(torch::equal((heads * by_head).values(), values * by_head));
  EXPECT_TRUE(torch::allclose((heads / by_head).values(), values / by_head));
  const auto row = torch::arange(1, 5, torch::dtype(f64));  // of one that has no heads, it is a row of a dense matrix
  EXPECT_TRUE(same(A * row, A.to_dense() * row));
}

TEST(Structure, WhatAMapGivesIsANumberAnEntryOrAHead) {
  const auto A = example();
  const auto twice = [](const torch::Tensor& v) { return torch::stack({v, v}, 1); };
  EXPECT_EQ(A.map(twice).values().sizes(), torch::IntArrayRef({6, 2}));
  const auto refused = [&](const auto& f) {
    return message([&] { A.map(f); }).starts_with("map: f must give values for 6 entries, not (");
  };
  EXPECT_TRUE(refused([](const torch::Tensor& v) { return v.view({-1, 1, 1}); }));
  EXPECT_TRUE(refused([](const torch::Tensor& v) { return v.slice(0, 1); }));
  EXPECT_TRUE(refused([](const torch::Tensor& v) { return v.sum(); }));
}

TEST(Structure, NothingHasManyShapes) {
  const auto nothing = gs::from_dense(torch::zeros({5, 0}));
  EXPECT_EQ(nothing.reshape(7, 0).shape(), (gs::Shape{7, 0}));
  EXPECT_EQ(nothing.reshape(0, 3).shape(), (gs::Shape{0, 3}));
  EXPECT_THROW(nothing.reshape(1, 1), c10::ValueError);
}
