// SPDX-License-Identifier: BSD-3-Clause
// Parts of patterns and patterns put together, against dense loops over the matrix of positions: entry p of A stands
// as p at its place, -1 stands everywhere else.
#include <functional>
#include <optional>

#include <gossamer/kernels/band.h>
#include <gossamer/kernels/blocks.h>
#include <gossamer/kernels/entries.h>
#include <gossamer/kernels/kron.h>
#include <gossamer/kernels/submatrix.h>
#include "dense.h"

namespace gossamer::test {
namespace {

using I = int32_t;

template <class J>
std::vector<int64_t> positions_of(const OwnedPattern<J>& A) {
  std::vector<int64_t> dense(A.rows * A.cols, -1);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) dense[i * A.cols + A.indices[p]] = p;
  return dense;
}

// A pattern whose entry q was entry positions[q] of another.
template <class J>
struct Gathered {
  OwnedPattern<J> pattern;
  std::vector<J> positions;

  Gathered(int64_t rows, int64_t cols) : pattern(cols, std::vector<std::vector<J>>(rows)) {}
  void resize(int64_t nnz) {
    pattern.indices.resize(nnz);
    positions.resize(nnz);
  }
  // want(i, j): the position that should stand there, or -1.
  void expect(const std::function<int64_t(int64_t, int64_t)>& want) const {
    EXPECT_EQ(check_structure(pattern.view()), "");
    const std::vector<int64_t> at = positions_of(pattern);
    for (int64_t i = 0; i < pattern.rows; ++i)
      for (int64_t j = 0; j < pattern.cols; ++j) {
        const int64_t q = at[i * pattern.cols + j];
        ASSERT_EQ(q < 0 ? -1 : static_cast<int64_t>(positions[q]), want(i, j)) << "at " << i << ", " << j;
      }
  }
};

TEST(Structure, BandKeepsTheDiagonalsBetween) {
  Random random(1);
  for (const auto& A : {random_pattern<I>(random, 9, 13, 0.4), random_pattern<I>(random, 12, 5, 0.3),
                        random_pattern<I>(random, 0, 4, 0.3), random_pattern<I>(random, 4, 0, 0.3)}) {
    const auto dense = positions_of(A);
    for (const auto& [low, high] : {std::pair{-20, 0}, {0, 20}, {-1, 2}, {3, 1}, {-30, -20}}) {
      Gathered<I> band(A.rows, A.cols);
      band.resize(kernels::band_count(A.view(), low, high, band.pattern.indptr.data()));
      kernels::band_fill(A.view(), low, high, band.pattern.indices.data(), band.positions.data());
      band.expect([&, from = low, to = high](int64_t i, int64_t j) {
        return j - i >= from && j - i <= to ? dense[i * A.cols + j] : -1;
      });
    }
  }
}

TEST(Structure, EntriesAreFoundOrLeftOut) {
  Random random(2);
  const auto A = random_pattern<I>(random, 11, 7, 0.4);
  const auto dense = positions_of(A);
  std::vector<int64_t> rows, cols;
  for (int64_t k = 0; k < 200; ++k) rows.push_back(random.below(11)), cols.push_back(random.below(7));
  std::vector<int64_t> which(200), positions(200), found(200, -1);
  const int64_t count = kernels::find_entries(A.view(), 200, rows.data(), cols.data(), which.data(), positions.data());
  for (int64_t q = 0; q < count; ++q) found[which[q]] = positions[q];
  for (int64_t k = 0; k < 200; ++k) EXPECT_EQ(found[k], dense[rows[k] * 7 + cols[k]]);
}

TEST(Structure, SubmatrixTakesRowsAndColumnsInAnyOrder) {
  Random random(3);
  const auto A = random_pattern<I>(random, 10, 8, 0.4);
  const auto dense = positions_of(A);
  const std::vector<int64_t> rows{9, 0, 0, 3, 2, 7}, cols{7, 7, 0, 3, 1}, none;
  for (const auto* chosen_rows : {&rows, &none})
    for (const std::vector<int64_t>* chosen : {&cols, &none, static_cast<const std::vector<int64_t>*>(nullptr)}) {
      const auto count = static_cast<int64_t>(chosen_rows->size());
      const auto width = chosen ? static_cast<int64_t>(chosen->size()) : A.cols;
      std::optional<kernels::ColumnTargets> targets;
      if (chosen) targets.emplace(A.cols, width, chosen->data());
      Gathered<int64_t> B(count, width);
      B.resize(kernels::submatrix_count(A.view(), count, chosen_rows->data(), targets ? &*targets : nullptr,
                                        B.pattern.indptr.data()));
      kernels::submatrix_fill(A.view(), count, chosen_rows->data(), targets ? &*targets : nullptr,
                              B.pattern.indices.data(), B.positions.data());
      B.expect([&](int64_t r, int64_t c) { return dense[(*chosen_rows)[r] * A.cols + (chosen ? (*chosen)[c] : c)]; });
    }
}

TEST(Structure, KronIsEveryPairOfEntries) {
  Random random(4);
  const auto A = random_pattern<I>(random, 5, 4, 0.5), B = random_pattern<I>(random, 3, 6, 0.5);
  const auto dense_A = positions_of(A), dense_B = positions_of(B);
  Gathered<int64_t> K(A.rows * B.rows, A.cols * B.cols);
  K.resize(A.nnz() * B.nnz());
  std::vector<int64_t> from_A(A.nnz() * B.nnz()), from_B(A.nnz() * B.nnz());
  kernels::kron(A.view(), B.view(), K.pattern.indptr.data(), K.pattern.indices.data(), from_A.data(), from_B.data());
  for (size_t q = 0; q < from_A.size(); ++q) K.positions[q] = from_A[q] * B.nnz() + from_B[q];
  K.expect([&](int64_t i, int64_t j) -> int64_t {
    const int64_t a = dense_A[i / 3 * 4 + j / 6], b = dense_B[i % 3 * 6 + j % 6];
    return a < 0 || b < 0 ? -1 : a * B.nnz() + b;
  });
}

TEST(Structure, BlocksStandWhereTheyArePut) {
  Random random(5);
  const auto A = random_pattern<I>(random, 4, 3, 0.5), B = random_pattern<I>(random, 4, 5, 0.5),
             C = random_pattern<I>(random, 2, 6, 0.5);
  const std::vector<kernels::Block<I>> parts{{A.view(), 0, 0}, {B.view(), 0, 3}, {C.view(), 5, 2}};
  const auto dense_A = positions_of(A), dense_B = positions_of(B), dense_C = positions_of(C);
  Gathered<int64_t> M(8, 9);
  M.resize(A.nnz() + B.nnz() + C.nnz());
  kernels::blocks(parts, 8, M.pattern.indptr.data(), M.pattern.indices.data(), M.positions.data());
  const auto in = [](const auto& block, const auto& dense, int64_t i, int64_t j, int64_t before) -> int64_t {
    const bool inside = i >= 0 && i < block.rows && j >= 0 && j < block.cols;
    const int64_t p = inside ? dense[i * block.cols + j] : -1;
    return p < 0 ? -1 : before + p;
  };
  M.expect([&](int64_t i, int64_t j) {
    return std::max(
        {in(A, dense_A, i, j, 0), in(B, dense_B, i, j - 3, A.nnz()), in(C, dense_C, i - 5, j - 2, A.nnz() + B.nnz())});
  });
}

}  // namespace
}  // namespace gossamer::test
