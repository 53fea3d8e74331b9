// SPDX-License-Identifier: BSD-3-Clause
// Aᵀ against a sorted list of A's places, turned around; and as spmm uses it, with A's values behind a permutation.
#include <gossamer/kernels/transpose.h>

#include <algorithm>
#include <tuple>

#include <gossamer/kernels/spmm.h>
#include "dense.h"

namespace gossamer::test {
namespace {

template <class I>
struct Transposed {
  OwnedPattern<I> pattern;
  std::vector<I> perm;

  explicit Transposed(const OwnedPattern<I>& A)
      : pattern(A.rows, std::vector<std::vector<I>>(A.cols)), perm(A.nnz(), I{-1}) {
    std::fill(pattern.indptr.begin(), pattern.indptr.end(), I{-1});  // every element is to be written
    pattern.indices = std::vector<I>(A.nnz(), I{-1});
    kernels::transpose(A.view(), pattern.indptr.data(), pattern.indices.data(), perm.data());
  }
};

// (column, row, entry), by column and then row.
template <class I>
std::vector<std::tuple<I, I, I>> turned(const OwnedPattern<I>& A) {
  std::vector<std::tuple<I, I, I>> places;
  for (int64_t i = 0; i < A.rows; ++i)
    for (I p = A.indptr[i]; p < A.indptr[i + 1]; ++p) places.emplace_back(A.indices[p], static_cast<I>(i), p);
  std::sort(places.begin(), places.end());
  return places;
}

template <class I>
void expect_transposed(const OwnedPattern<I>& A) {
  SCOPED_TRACE(testing::Message() << A.rows << " x " << A.cols << ", nnz " << A.nnz());
  const Transposed<I> T(A);
  ASSERT_EQ(check_structure(T.pattern.view()), "");
  std::vector<std::tuple<I, I, I>> got;
  for (int64_t j = 0; j < A.cols; ++j)
    for (I q = T.pattern.indptr[j]; q < T.pattern.indptr[j + 1]; ++q)
      got.emplace_back(static_cast<I>(j), T.pattern.indices[q], T.perm[q]);
  EXPECT_EQ(got, turned(A));

  const Transposed<I> back(T.pattern);
  EXPECT_EQ(back.pattern.indptr, A.indptr);
  EXPECT_EQ(back.pattern.indices, A.indices);
  for (int64_t p = 0; p < A.nnz(); ++p) EXPECT_EQ(T.perm[back.perm[p]], p);
}

template <class I>
struct Transpose : testing::Test {};
TYPED_TEST_SUITE(Transpose, IndexTypes);

TYPED_TEST(Transpose, TurnsEveryPlace) {
  Random random(30);
  for (const int64_t rows : {1, 2, 9, 60})
    for (const int64_t cols : {1, 3, 50}) expect_transposed(random_pattern<TypeParam>(random, rows, cols, 0.3));
  expect_transposed(power_law_pattern<TypeParam>(300, 200));
}

TYPED_TEST(Transpose, OddShapes) {
  expect_transposed(OwnedPattern<TypeParam>(0, {}));
  expect_transposed(OwnedPattern<TypeParam>(5, {}));
  expect_transposed(OwnedPattern<TypeParam>(0, {{}, {}, {}}));
  expect_transposed(OwnedPattern<TypeParam>(4, {{}, {}, {}}));
  expect_transposed(OwnedPattern<TypeParam>(4, {{}, {3}, {}}));
  expect_transposed(OwnedPattern<TypeParam>(4, {{0, 1, 2, 3}}));
  expect_transposed(OwnedPattern<TypeParam>(1, {{0}, {}, {0}, {0}}));
}

// Y = Aᵀ X with the values of A as they lie.
TYPED_TEST(Transpose, SharesTheValues) {
  Random random(31);
  const auto A = random_pattern<TypeParam>(random, 30, 20, 0.3);
  const Transposed<TypeParam> T(A);
  constexpr int64_t heads = 3, width = 5;
  const auto values = random.values<double>(A.nnz() * heads), X = random.values<double>(A.rows * heads * width);
  const auto dense = to_dense(Csr<double, TypeParam>{A.view(), values.data(), heads, nullptr});
  std::vector<Reference> want(A.cols * heads * width);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t j = 0; j < A.cols; ++j)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t c = 0; c < width; ++c)
          want[(j * heads + h) * width + c].add(dense[(h * A.rows + i) * A.cols + j], X[(i * heads + h) * width + c]);
  std::vector<double> Y(A.cols * heads * width);
  kernels::spmm(Pool(Serial{}), Csr<double, TypeParam>{T.pattern.view(), values.data(), heads, T.perm.data()}, X.data(),
                heads * width, width, Y.data());
  expect_close(Y, want);
}

}  // namespace
}  // namespace gossamer::test
