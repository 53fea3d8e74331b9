// SPDX-License-Identifier: BSD-3-Clause
// Y = A X: dense loops judge the plain loops of spmm.h, those judge the CUDA kernels.
#include <gossamer/kernels/spmm.h>

#include "matrix.h"
#include "spmm.cuh"

namespace gossamer::test {
namespace {

// Y[i, h, c] = Σ_j A[h, i, j] X[j, h, c], with A written out densely.
template <class T, class I>
std::vector<T> by_dense_loops(const Csr<T, I>& A, const std::vector<T>& X, int64_t ldx, int64_t width) {
  std::vector<T> Y(A.rows * A.heads * width);
  for (int64_t h = 0; h < A.heads; ++h) {
    std::vector<double> dense(A.rows * A.cols);
    for (int64_t i = 0; i < A.rows; ++i)
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
        dense[i * A.cols + A.indices[p]] = A.values[(A.perm ? A.perm[p] : p) * A.heads + h];
    for (int64_t i = 0; i < A.rows; ++i)
      for (int64_t c = 0; c < width; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < A.cols; ++j) sum += dense[i * A.cols + j] * X[j * ldx + h * width + c];
        Y[(i * A.heads + h) * width + c] = static_cast<T>(sum);
      }
  }
  return Y;
}

// Plain stands for the loops of the definition, Cuda for the kernel.
struct Plain {};
template <class E, class T, class I>
std::vector<T> run(E exec, const Csr<T, I>& A, const std::vector<T>& X, int64_t ldx, int64_t width) {
  std::vector<T> Y = not_numbers<T>(A.rows * A.heads * width);
  auto scratch = not_numbers<Sum<T>>(kernels::piece_places(A.nnz) * A.heads * width);
  if constexpr (std::is_same_v<E, Plain>)
    kernels::plain::spmm(A, X.data(), ldx, width, Y.data());
  else
    kernels::spmm(exec, A, X.data(), ldx, width, Y.data(), scratch.data());
  return Y;
}

// f(A, X, ldx, width) for every case; strides, permutations and schedules take turns.
template <class T, class I, class F>
void for_each_case(const F& f) {
  uint64_t turn = 0;
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    std::mt19937 random(static_cast<unsigned>(++turn));
    const int64_t columns = c.heads * c.width, ldx = std::max<int64_t>(columns, 1) + static_cast<int64_t>(turn % 3);
    const Matrix<T, I> A(c.lengths, c.cols, c.heads, turn % 2, random);
    schedule(turn);
    f(A.csr(), dense_rows<T>(c.cols, columns, ldx, random), ldx, c.width);
  }
}

TEST(Spmm, PlainLoopsEqualDenseLoops) {
  for_each_case<double, int32_t>([](auto A, const auto& X, int64_t ldx, int64_t width) {
    EXPECT_TRUE(same_bits(run(Plain{}, A, X, ldx, width), by_dense_loops(A, X, ldx, width)));
  });
}

template <class>
struct SpmmOfType : testing::Test {};
TYPED_TEST_SUITE(SpmmOfType, AllTypes);

TYPED_TEST(SpmmOfType, CudaEqualsPlainLoops) {
  for_each_case<typename TypeParam::Value, typename TypeParam::Index>(
      [](auto A, const auto& X, int64_t ldx, int64_t width) {
        EXPECT_TRUE(same_bits(run(Cuda{}, A, X, ldx, width), run(Plain{}, A, X, ldx, width)));
      });
}

// Real numbers, whose sums do depend on the order: the order must not depend on the schedule, the index type, or where
// in the matrix a row stands.
TEST(Spmm, SameBitsUnderEverySchedule) {
  const Lengths lengths{0, 33, 2, under_tsan ? 40 : 1800};
  const int64_t cols = lengths.back();
  std::mt19937 random(1), again(1);
  const Matrix<float, int32_t> narrow(lengths, cols, 1, false, random);
  const Matrix<float, int64_t> wide(lengths, cols, 1, false, again);
  std::vector<float> values(narrow.nnz()), X(cols * 40);
  for (auto* v : {&values, &X})
    for (float& x : *v) x = std::uniform_real_distribution<float>(-1, 1)(random);
  Csr<float, int32_t> A = narrow.csr();
  Csr<float, int64_t> A64 = wide.csr();
  A.values = A64.values = values.data();
  const std::vector<int32_t> last_row{0, static_cast<int32_t>(cols)};
  const Csr<float, int32_t> alone{{1, cols, cols, last_row.data(), A.indices + 35}, A.values + 35, 1, nullptr};
  for (int64_t width : {1, 6, 40}) {
    schedule(0);
    const std::vector<float> first = run(Cuda{}, A, X, 40, width);
    EXPECT_TRUE(same_bits(run(Cuda{}, A64, X, 40, width), first));
    EXPECT_TRUE(same_bits(run(Cuda{}, alone, X, 40, width), {first.end() - width, first.end()}));
    for (uint64_t seed = 1; seed <= (under_tsan ? 1 : 25); ++seed) {
      schedule(seed);
      EXPECT_TRUE(same_bits(run(Cuda{}, A, X, 40, width), first));
    }
  }
}

// Grids much smaller than the matrix: the kernels stride over the rest. Every layout, also those the launcher would
// not choose for this shape.
TEST(Spmm, AnyGridCoversTheMatrix) {
  constexpr int64_t width = 37;
  std::mt19937 random(2);
  Lengths lengths(23, 3);
  lengths[5] = 1600;
  const Matrix<double, int32_t> matrix(under_tsan ? Lengths{1, 0, 2} : lengths, 1600, 1, true, random);
  const Csr<double, int32_t> A = matrix.csr();
  const std::vector<double> X = dense_rows<double>(A.cols, width, width, random);
  const std::vector<double> wanted = run(Plain{}, A, X, width, width);
  std::vector<double> wanted_first;
  for (int64_t i = 0; i < A.rows; ++i) wanted_first.push_back(wanted[i * width]);
  const auto check = [&](int64_t columns, const std::vector<double>& product, auto first, auto second, auto... shape) {
    std::vector<double> Y = not_numbers<double>(A.rows * columns),
                        partial = not_numbers<double>(kernels::piece_places(A.nnz) * columns);
    double *y = Y.data(), *sums = partial.data();
    device::launch(Cuda{}, first, 2, 64, A, X.data(), width, shape..., y, sums);
    device::launch(Cuda{}, second, 1, 64, A, columns, columns, sums, y, nullptr);
    EXPECT_TRUE(same_bits(Y, product));
  };
  const auto tiles = [&](auto kernel) { check(width, wanted, kernel, device::add_pieces<32, double, int32_t>, width); };
  const auto rows = [&](auto kernel) { check(1, wanted_first, kernel, device::add_pieces<1, double, int32_t>); };
  schedule(3);
  tiles(kernels::spmm_tiles<4, 1, double, int32_t>);
  tiles(kernels::spmm_tiles<8, 1, double, int32_t>);
  tiles(kernels::spmm_tiles<16, 1, double, int32_t>);
  tiles(kernels::spmm_tiles<32, 1, double, int32_t>);
  tiles(kernels::spmm_tiles<32, 2, double, int32_t>);
  tiles(kernels::spmm_tiles<32, 4, double, int32_t>);
  rows(kernels::spmv_rows<2, double, int32_t>);
  rows(kernels::spmv_rows<8, double, int32_t>);
  rows(kernels::spmv_rows<32, double, int32_t>);
}

// Nobody multiplies by zero to skip an entry: rows of X that the pattern does not name may hold anything.
TEST(Spmm, ReadsOnlyWhatThePatternNames) {
  const std::vector<int32_t> indptr{0, 2, 2, 3}, indices{1, 3, 3};
  const std::vector<float> values{1, 2, 3};
  const Csr<float, int32_t> A{{3, 5, 3, indptr.data(), indices.data()}, values.data(), 1, nullptr};
  for (int64_t width : {1, 5, 40}) {
    std::vector<float> X = not_numbers<float>(5 * width);
    std::fill_n(X.begin() + width, width, 1.0f);
    std::fill_n(X.begin() + 3 * width, width, 1.0f);
    EXPECT_TRUE(same_bits(run(Cuda{}, A, X, width, width), run(Plain{}, A, X, width, width)));
  }
}

// 300 ones: a sum kept in bfloat16 would stop at 256.
TEST(Spmm, HalvesAddInFloat) {
  std::mt19937 random(4);
  const Matrix<bfloat16, int32_t> matrix({300}, 300, 1, false, random);
  const std::vector<bfloat16> ones(300, bfloat16(1.0f)), X(300 * 40, bfloat16(1.0f));
  Csr<bfloat16, int32_t> A = matrix.csr();
  A.values = ones.data();
  for (int64_t width : {1, 5, 40})
    for (bfloat16 y : run(Cuda{}, A, X, width, width)) EXPECT_EQ(y, 300.0f);
}

}  // namespace
}  // namespace gossamer::test
