// SPDX-License-Identifier: BSD-3-Clause
// Softmax and maximum of each row on the device, against the CPU kernels.
#include "softmax.cuh"

#include <gossamer/kernels/softmax.h>
#include "argmax.cuh"
#include "matrix.h"

namespace gossamer::test {
namespace {

// f(A) for the matrices of every case; the width of a case plays no part here.
template <class T, class I, class F>
void for_each_matrix(const F& f) {
  uint64_t turn = 0;
  for (const Case& c : cases()) {
    if (c.width > 3) continue;
    SCOPED_TRACE(testing::PrintToString(c));
    std::mt19937 random(static_cast<unsigned>(++turn));
    const Matrix<T, I> A(c.lengths, c.cols, c.heads, /*permuted=*/false, random);
    schedule(turn);
    f(A.csr());
  }
}

template <class>
struct RowsOfType : testing::Test {};
TYPED_TEST_SUITE(RowsOfType, AllTypes);

// The device adds in another order and has its own exp: a few units in the last place.
TYPED_TEST(RowsOfType, SoftmaxIsCloseToSerial) {
  using T = typename TypeParam::Value;
  const double tolerance = sizeof(T) == 8 ? 1e-14 : sizeof(T) == 4 ? 1e-6 : 1e-2;
  for_each_matrix<T, typename TypeParam::Index>([&](const auto& A) {
    std::vector<T> wanted = not_numbers<T>(A.nnz * A.heads), got = wanted, again = wanted;
    kernels::row_softmax(Serial{}, A, wanted.data());
    std::vector<Sum<T>> scratch = not_numbers<Sum<T>>(2 * kernels::piece_places(A.nnz) * A.heads);
    kernels::row_softmax(Cuda{}, A, got.data(), scratch.data());
    for (size_t k = 0; k < got.size(); ++k)
      ASSERT_NEAR(static_cast<double>(got[k]), static_cast<double>(wanted[k]), tolerance);
    schedule(99);
    kernels::row_softmax(Cuda{}, A, again.data(), scratch.data());
    EXPECT_TRUE(same_bits(again, got));
  });
}

// A whole piece of a long row may have no weight; a row of -∞ alone, or one with a NaN, has no softmax.
TEST(Rows, SoftmaxOfInfinitiesInPieces) {
  std::mt19937 random(1);
  const int64_t length = 1700;
  const Matrix<double, int32_t> matrix({length, length, length}, length, 1, false, random);
  std::vector<double> values(3 * length, 0.5), P = not_numbers<double>(3 * length), scratch = P;
  std::fill_n(values.begin(), length - 5, -INFINITY);
  std::fill_n(values.begin() + length, length, -INFINITY);
  values.back() = NAN;
  Csr<double, int32_t> A = matrix.csr();
  A.values = values.data();
  schedule(2);
  kernels::row_softmax(Cuda{}, A, P.data(), scratch.data());
  for (int64_t k = 0; k < length; ++k) {
    EXPECT_EQ(P[k], k < length - 5 ? 0.0 : 0.2);
    EXPECT_TRUE(std::isnan(P[length + k]) && std::isnan(P[2 * length + k]));
  }
}

TYPED_TEST(RowsOfType, ArgmaxEqualsSerial) {
  for_each_matrix<typename TypeParam::Value, typename TypeParam::Index>([](const auto& A) {
    for (const bool stored : {false, true}) {
      std::vector<int64_t> wanted(A.rows * A.heads, -7), got(A.rows * A.heads, -7);
      kernels::row_argmax(Serial{}, A, stored, wanted.data());
      std::vector<int64_t> scratch(kernels::piece_places(A.nnz) * A.heads, -7);
      kernels::row_argmax(Cuda{}, A, stored, got.data(), scratch.data());
      EXPECT_EQ(got, wanted);
    }
  });
}

}  // namespace
}  // namespace gossamer::test
