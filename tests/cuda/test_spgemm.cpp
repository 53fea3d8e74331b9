// SPDX-License-Identifier: BSD-3-Clause
// Sparse products on a pattern, in all three forms, against the plain loops and the host's kernels of spgemm.h.
#include "spgemm.cuh"

#include "matrix.h"

namespace gossamer::test {
namespace {

// Rows of C around the edges of what registers (32 sums), shared memory (128) and one warp (1024) hold.
struct Product {
  Lengths A, B, C;
  int64_t inner, cols;
};

std::vector<Product> products() {
  if (under_tsan) return {{{2, 0, 5, 1}, {3, 0, 33, 1, 2}, {4, 2, 40, 140}, 5, 150}};
  return {{{0, 1, 5, 3, 2, 4}, {3, 0, 33, 1, 40, 31}, {7, 32, 33, 0, 1, 31}, 6, 70},
          {{40, 1, 0, 3}, Lengths(50, 20), {300, 129, 128, 127}, 50, 400},
          {{9, 2, 30, 1}, Lengths(30, 200), {1024, 0, 1700, 1025}, 30, 1800},
          {{3, 5, 0, 7, 1, 4, 9}, Lengths(9, 400), half_in_one_row(), 9, 4000},
          {Lengths(90, 2), Lengths(30, 2), Lengths(90, 4), 30, 30},
          {{}, {1, 1}, {}, 2, 3},
          {{0, 0}, {}, {1, 2}, 0, 3},
          {{1}, {1}, {1}, 1, 1}};
}

template <class T, class I, class F>
void for_each_product(const F& f) {
  uint64_t turn = 0;
  for (const Product& c : products())
    for (const bool permuted : {false, true}) {
      std::mt19937 random(static_cast<unsigned>(++turn));
      schedule(turn);
      f(c, permuted, random);
    }
}

template <class>
struct SpgemmOfType : testing::Test {};
TYPED_TEST_SUITE(SpgemmOfType, AllTypes);

TYPED_TEST(SpgemmOfType, RowsEqualPlainLoops) {
  using T = typename TypeParam::Value;
  using I = typename TypeParam::Index;
  for_each_product<T, I>([](const Product& c, bool permuted, std::mt19937& random) {
    const Matrix<T, I> A(c.A, c.inner, 1, permuted, random), B(c.B, c.cols, 1, false, random);
    const Matrix<T, I> C(c.C, c.cols, 1, false, random);
    std::vector<T> wanted(C.nnz()), got = not_numbers<T>(C.nnz());
    std::vector<Sum<T>> scratch(C.nnz(), NAN);
    kernels::plain::spgemm(A.csr(), B.csr(), C.pattern(), wanted.data());
    kernels::spgemm_nn(Cuda{}, A.csr(), B.csr(), C.pattern(), got.data(), scratch.data());
    EXPECT_TRUE(same_bits(got, wanted));
  });
}

TYPED_TEST(SpgemmOfType, DotsEqualTheHost) {
  using T = typename TypeParam::Value;
  using I = typename TypeParam::Index;
  for_each_product<T, I>([](const Product& c, bool permuted, std::mt19937& random) {
    const auto wide = static_cast<int64_t>(c.C.size());  // C is (rows of A) × (rows of B): the case's own, turned
    const Matrix<T, I> A(c.C, c.cols, 1, permuted, random), B(c.B, c.cols, 1, false, random);
    Lengths lengths(wide);
    for (int64_t& length : lengths) length = static_cast<int64_t>(random() % (c.B.size() + 1));
    const Matrix<T, I> C(lengths, static_cast<int64_t>(c.B.size()), 1, false, random);
    std::vector<T> wanted(C.nnz()), got = not_numbers<T>(C.nnz());
    kernels::spgemm_nt(Serial{}, A.csr(), B.csr(), C.pattern(), wanted.data());
    kernels::spgemm_nt(Cuda{}, A.csr(), B.csr(), C.pattern(), got.data());
    EXPECT_TRUE(same_bits(got, wanted));
  });
}

// Real numbers, whose sums do depend on the order: the order must not depend on the schedule. It is that of the inner
// index, wherever the sums lie, so that a full row of C and a few of its entries have the same bits.
TEST(Spgemm, TheSameBitsForEverySchedule) {
  std::mt19937 random(3);
  Matrix<float, int32_t> A({5, 0, 9, 3}, 20, 1, false, random), B(Lengths(20, 70), 200, 1, false, random);
  const Matrix<float, int32_t> C({40, 3, 200, 10}, 200, 1, false, random);
  std::vector<float> a(A.nnz()), b(B.nnz());
  for (float& v : a) v = static_cast<float>(random() % 1000) / 997;
  for (float& v : b) v = static_cast<float>(random() % 1000) / 991;
  auto left = A.csr(), right = B.csr();
  left.values = a.data(), right.values = b.data();
  std::vector<float> first, scratch(C.nnz());
  for (uint64_t seed = 0; seed < (under_tsan ? 3 : 24); ++seed) {
    schedule(seed);
    std::vector<float> got = not_numbers<float>(C.nnz());
    kernels::spgemm_nn(Cuda{}, left, right, C.pattern(), got.data(), scratch.data());
    if (first.empty()) first = got;
    EXPECT_TRUE(same_bits(got, first));
  }
  const auto all = C.pattern();
  for (const int wanted : {2, 32, 33, 128, 129}) {
    const std::vector<int32_t> indptr{0, 0, 0, wanted, wanted};
    const PatternView<int32_t> few{4, 200, wanted, indptr.data(), all.indices + all.indptr[2]};
    std::vector<float> got = not_numbers<float>(wanted);
    kernels::spgemm_nn(Cuda{}, left, right, few, got.data(), scratch.data());
    EXPECT_TRUE(same_bits(got, {first.begin() + all.indptr[2], first.begin() + all.indptr[2] + wanted}));
  }
}

}  // namespace
}  // namespace gossamer::test
