// SPDX-License-Identifier: BSD-3-Clause
// Products whose dense operand is in two arrays, against the dense product, and bit for bit against the kernels of one
// array, at the level GOSSAMER_SIMD chose (CTest runs all three).
#include <gossamer/kernels/border.h>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

const std::vector<int64_t> ranges = {3, 9, 20, 21, 40, 55};  // rows that need no halo
const Ranges inside{ranges.data(), 3};

// 60 rows; those inside have columns below `owned` alone, others any. Not sorted: a halo is behind the own columns.
template <class I>
OwnedPattern<I> block(Random& random, int64_t owned, int64_t halo) {
  std::vector<std::vector<I>> of_row(60);
  for (int64_t i = 0; i < 60; ++i) {
    const bool own = (i >= 3 && i < 9) || i == 20 || (i >= 40 && i < 55);
    const int64_t entries = i % 7 == 5 ? 0 : random.below(12);
    for (const I j : random.permutation<I>(own ? owned : owned + halo))
      if (static_cast<int64_t>(of_row[i].size()) < entries) of_row[i].push_back(j);
  }
  return {owned + halo, of_row};
}

// One array [X; H], cut in two: the rows of X `ldx` apart, those of H without a gap.
template <class T>
struct Cut {
  std::vector<T> X, H, both;
  int64_t owned, ldx, columns;

  Cut(Random& random, int64_t owned_, int64_t halo, int64_t columns_, int64_t padding)
      : owned(owned_), ldx(columns_ + padding), columns(columns_) {
    X = random.template strided<T>(owned, columns, ldx);
    H = random.template values<T>(halo * columns);
    both = std::vector<T>((owned + halo) * columns);
    for (int64_t j = 0; j < owned; ++j) std::copy_n(X.begin() + j * ldx, columns, both.begin() + j * columns);
    std::copy(H.begin(), H.end(), both.begin() + owned * columns);
  }
  TwoSources<T> sources() const { return {X.data(), ldx, H.data(), columns, owned}; }
};

constexpr int64_t owned = 20, halo = 13;

template <class Pair>
struct Border : testing::Test {};
TYPED_TEST_SUITE(Border, AllTypes);

TYPED_TEST(Border, SpmmHasTheBitsOfOneArray) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(30);
  const auto A = block<I>(random, owned, halo);
  for (const int64_t width : {0, 1, 2, 3, 5, 8, 16, 17, 33, 64, 70})
    for (const int64_t heads : {1, 3})
      for (const int64_t padding : {0, 5}) {
        SCOPED_TRACE(testing::Message() << "width " << width << ", heads " << heads);
        const auto values = random.values<T>(A.nnz() * heads);
        const Cut<T> X(random, owned, halo, heads * width, padding);
        const Csr<T, I> whole{A.view(), values.data(), heads, nullptr};
        CsrOfMany<T, I> many{whole};
        many.own = A.nnz();
        std::vector<T> want(A.rows * heads * width, rounded<T>(NAN));
        kernels::spmm(Pool(Threads(1)), whole, X.both.data(), heads * width, width, want.data());
        expect_close(want, dense_spmm(whole, X.both, heads * width, width));
        for (const int64_t threads : {1, 3}) {
          const Threads exec(threads);
          std::vector<T> got(A.rows * heads * width, rounded<T>(NAN));  // every element is to be written
          kernels::spmm_inside(Pool(exec), whole, inside, X.X.data(), X.ldx, width, got.data());
          kernels::spmm_border(Pool(exec), many, inside, X.sources(), width, got.data());
          expect_close(got, dense_spmm(whole, X.both, heads * width, width));
          expect_same_bits(got, want);
        }
      }
}

// As the transpose reads them: through a permutation, and those of some entries from an array of their own. Rows that
// need no halo have own values.
TYPED_TEST(Border, ValuesThatCameFromOthers) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(31);
  const auto A = block<I>(random, owned, halo);
  std::vector<I> of_own, of_others;
  for (int64_t p = 0; p < A.nnz(); ++p) (A.indices[p] < owned ? of_own : of_others).push_back(static_cast<I>(p));
  const auto own = static_cast<int64_t>(of_own.size());
  std::vector<I> perm(A.nnz());
  const auto order = random.permutation<I>(own);
  for (int64_t k = 0; k < own; ++k) perm[of_own[k]] = order[k];
  for (size_t k = 0; k < of_others.size(); ++k) perm[of_others[k]] = static_cast<I>(own + k);
  for (const int64_t width : {1, 6, 17})
    for (const int64_t heads : {1, 2}) {
      SCOPED_TRACE(testing::Message() << "width " << width << ", heads " << heads);
      const auto all = random.values<T>(A.nnz() * heads);
      const std::vector<T> values(all.begin(), all.begin() + own * heads), came(all.begin() + own * heads, all.end());
      const Cut<T> X(random, owned, halo, heads * width, 0);
      const Csr<T, I> whole{A.view(), all.data(), heads, perm.data()};
      std::vector<T> want(A.rows * heads * width), got(want.size(), rounded<T>(NAN));
      kernels::spmm(Pool(Threads(1)), whole, X.both.data(), heads * width, width, want.data());
      CsrOfMany<T, I> many{{A.view(), values.data(), heads, perm.data()}};
      many.came = came.data(), many.own = own;
      const Threads exec(2);
      kernels::spmm_inside(Pool(exec), static_cast<const Csr<T, I>&>(many), inside, X.X.data(), X.ldx, width,
                           got.data());
      kernels::spmm_border(Pool(exec), many, inside, X.sources(), width, got.data());
      expect_close(got, dense_spmm(whole, X.both, heads * width, width));
      expect_same_bits(got, want);
    }
}

TYPED_TEST(Border, SddmmHasTheBitsOfOneArray) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(32);
  const auto A = block<I>(random, owned, halo);
  for (const int64_t width : {0, 1, 2, 5, 8, 17, 33, 64, 70})
    for (const int64_t heads : {1, 3}) {
      SCOPED_TRACE(testing::Message() << "width " << width << ", heads " << heads);
      const int64_t ldu = heads * width + 2;
      const auto U = random.strided<T>(A.rows, heads * width, ldu);
      const Cut<T> V(random, owned, halo, heads * width, 3);
      std::vector<T> want(A.nnz() * heads);
      kernels::sddmm(Pool(Threads(1)), A.view(), heads, U.data(), ldu, V.both.data(), heads * width, width,
                     want.data());
      expect_close(want, dense_sddmm(A.view(), heads, U, ldu, V.both, heads * width, width));
      for (const int64_t threads : {1, 3}) {
        const Threads exec(threads);
        std::vector<T> got(A.nnz() * heads, rounded<T>(NAN));
        kernels::sddmm_inside(Pool(exec), A.view(), inside, heads, U.data(), ldu, V.X.data(), V.ldx, width, got.data());
        kernels::sddmm_border(Pool(exec), A.view(), inside, heads, U.data(), ldu, V.sources(), width, got.data());
        expect_same_bits(got, want);
      }
    }
}

// A row in parts: their sums, each from 0, added up in order.
TEST(BorderInParts, AddsThePartsOfARow) {
  Random random(33);
  const auto A = block<int32_t>(random, owned, halo);
  const auto values = random.values<double>(A.nnz());
  const Cut<double> x(random, owned, halo, 1, 0);
  std::vector<uint8_t> part(owned + halo);
  for (auto& k : part) k = static_cast<uint8_t>(random.below(4));
  CsrOfMany<double, int32_t> many{{A.view(), values.data(), 1, nullptr}};
  many.own = A.nnz();
  std::vector<double> got(A.rows, NAN);
  kernels::spmv_in_parts(Pool(Threads(2)), many, part.data(), x.sources(), got.data());
  for (int64_t i = 0; i < A.rows; ++i) {
    Reference want;
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) want.add(values[p], x.both[A.indices[p]]);
    EXPECT_LE(std::abs(got[i] - want.sum), tolerance<double>(want)) << "row " << i;
  }
  // 2⁵³ + 1 + 1 - 2⁵³ is 0 from left to right, and 2 where the ones are a part of their own.
  const OwnedPattern<int32_t> row(4, {{0, 1, 2, 3}});
  const std::vector<double> ones(4, 1.0), large = {0x1p53, 1, 1, -0x1p53};
  const TwoSources<double> own_rows{large.data(), 1, nullptr, 1, 4};
  CsrOfMany<double, int32_t> one{{row.view(), ones.data(), 1, nullptr}};
  one.own = 4;
  for (const auto& [parts, want] :
       std::vector<std::pair<std::vector<uint8_t>, double>>{{{0, 0, 0, 0}, 0}, {{0, 1, 1, 2}, 2}}) {
    kernels::spmv_in_parts(Pool(Threads(1)), one, parts.data(), own_rows, got.data());
    EXPECT_EQ(got[0], want);
  }
}

TEST(Ranges, RowsBetweenThem) {
  const auto between = [](int64_t from, int64_t to) {
    std::vector<std::pair<int64_t, int64_t>> found;
    inside.between(from, to, [&](int64_t begin, int64_t end) { found.emplace_back(begin, end); });
    return found;
  };
  using Found = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(between(0, 60), (Found{{0, 3}, {9, 20}, {21, 40}, {55, 60}}));
  EXPECT_EQ(between(5, 30), (Found{{9, 20}, {21, 30}}));
  EXPECT_EQ(between(41, 50), Found{});
  EXPECT_EQ(between(9, 9), Found{});
  EXPECT_EQ((Ranges{nullptr, 0}.count), 0);
}

}  // namespace
}  // namespace gossamer::test
