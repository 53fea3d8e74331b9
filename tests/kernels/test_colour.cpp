// SPDX-License-Identifier: BSD-3-Clause
// Colours against the definition: no two rows with a common column have the same; by first fit, each row has the
// smallest one that no earlier row with a common column has.
#include <gossamer/kernels/colour.h>

#include <set>

#include "dense.h"

namespace gossamer::test {
namespace {

template <class I>
bool share_a_column(const OwnedPattern<I>& A, int64_t i, int64_t k) {
  for (I p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
    for (I q = A.indptr[k]; q < A.indptr[k + 1]; ++q)
      if (A.indices[p] == A.indices[q]) return true;
  return false;
}

template <class I>
std::vector<I> by_definition(const OwnedPattern<I>& A) {
  std::vector<I> colour(A.rows);
  for (int64_t i = 0; i < A.rows; ++i) {
    std::set<I> taken;
    for (int64_t k = 0; k < i; ++k)
      if (share_a_column(A, i, k)) taken.insert(colour[k]);
    while (taken.contains(colour[i])) ++colour[i];
  }
  return colour;
}

template <class I>
int64_t expect_coloured(const OwnedPattern<I>& A) {
  SCOPED_TRACE(testing::Message() << A.rows << " x " << A.cols << ", nnz " << A.nnz());
  std::vector<I> colour(A.rows, I{-1});
  const int64_t first_fit = kernels::first_fit(A.view(), colour.data());
  EXPECT_EQ(colour, by_definition(A));
  EXPECT_EQ(first_fit, A.rows == 0 ? 0 : *std::max_element(colour.begin(), colour.end()) + 1);

  std::fill(colour.begin(), colour.end(), I{-1});
  const int64_t colours = kernels::colour(A.view(), colour.data());
  EXPECT_LE(colours, first_fit);
  EXPECT_EQ(colours, A.rows == 0 ? 0 : *std::max_element(colour.begin(), colour.end()) + 1);
  EXPECT_GE(A.rows == 0 ? 0 : *std::min_element(colour.begin(), colour.end()), 0);

  // No two entries of A lie in one place, so that each can be read off.
  std::vector<int64_t> at(A.nnz(), -1);
  kernels::colour_places(A.view(), colour.data(), /*by_columns=*/false, at.data());
  EXPECT_EQ(std::set<int64_t>(at.begin(), at.end()).size(), at.size());
  for (int64_t i = 0; i < A.rows; ++i)
    for (I p = A.indptr[i]; p < A.indptr[i + 1]; ++p) EXPECT_EQ(at[p], colour[i] * A.cols + A.indices[p]);
  return colours;
}

template <class I>
struct Colour : testing::Test {};
TYPED_TEST_SUITE(Colour, IndexTypes);

TYPED_TEST(Colour, IsTheSmallestThatIsFree) {
  Random random(40);
  for (const int64_t rows : {1, 2, 9, 60})
    for (const int64_t cols : {1, 3, 50})
      for (const double density : {0.05, 0.3}) expect_coloured(random_pattern<TypeParam>(random, rows, cols, density));
  expect_coloured(power_law_pattern<TypeParam>(300, 200));
}

TYPED_TEST(Colour, OddShapes) {
  EXPECT_EQ(expect_coloured(OwnedPattern<TypeParam>(0, {})), 0);
  EXPECT_EQ(expect_coloured(OwnedPattern<TypeParam>(5, {})), 0);
  EXPECT_EQ(expect_coloured(OwnedPattern<TypeParam>(0, {{}, {}, {}})), 1);
  EXPECT_EQ(expect_coloured(OwnedPattern<TypeParam>(4, {{}, {3}, {}})), 1);
  EXPECT_EQ(expect_coloured(OwnedPattern<TypeParam>(1, {{0}, {}, {0}, {0}})), 3);
}

// A column that all rows have: as many colours as rows, over more than one round of 64.
TYPED_TEST(Colour, MoreThanAWordOfColours) {
  for (const int64_t rows : {63, 64, 65, 128, 200}) {
    std::vector<std::vector<TypeParam>> columns(rows);
    for (int64_t i = 0; i < rows; ++i) columns[i] = {0, static_cast<TypeParam>(i + 1)};
    columns.push_back({static_cast<TypeParam>(rows + 1)});  // shares nothing: colour 0, whatever comes before it
    EXPECT_EQ(expect_coloured(OwnedPattern<TypeParam>(rows + 2, columns)), rows);
  }
}

// The five-point grid, whose best colouring is (row + 2 column) mod 5.
TYPED_TEST(Colour, AGridNeedsFive) {
  const int64_t side = 12;
  std::vector<std::vector<TypeParam>> columns(side * side);
  for (int64_t r = 0; r < side; ++r)
    for (int64_t c = 0; c < side; ++c)
      for (const auto& [y, x] : {std::pair{r - 1, c}, {r, c - 1}, {r, c}, {r, c + 1}, {r + 1, c}})
        if (y >= 0 && y < side && x >= 0 && x < side)
          columns[r * side + c].push_back(static_cast<TypeParam>(y * side + x));
  EXPECT_EQ(expect_coloured(OwnedPattern<TypeParam>(side * side, columns)), 5);
}

// Seeds of colours on the columns of A: where entry (i, j) lies in Y (colours, rows).
TYPED_TEST(Colour, PlacesByColumns) {
  const OwnedPattern<TypeParam> A(3, {{0, 2}, {1}});
  const std::vector<TypeParam> colour = {0, 0, 1};
  std::vector<int64_t> at(3);
  kernels::colour_places(A.view(), colour.data(), /*by_columns=*/true, at.data());
  EXPECT_EQ(at, (std::vector<int64_t>{0, 2, 1}));
}

}  // namespace
}  // namespace gossamer::test
