// SPDX-License-Identifier: BSD-3-Clause
// U Vᵀ on a pattern: dense loops judge the plain loops of sddmm.h, those judge the CUDA kernels.
#include <gossamer/kernels/sddmm.h>

#include "matrix.h"
#include "sddmm.cuh"

namespace gossamer::test {
namespace {

template <class T>
struct Factors {
  std::vector<T> U, V;
  int64_t ldu, ldv, heads, width;
};

// values[p, h] = (U Vᵀ)[h, i, j], with U Vᵀ written out densely.
template <class T, class I>
std::vector<T> by_dense_loops(const PatternView<I>& A, const Factors<T>& f) {
  std::vector<T> values(A.nnz * f.heads);
  for (int64_t h = 0; h < f.heads; ++h) {
    std::vector<double> dense(A.rows * A.cols);
    for (int64_t i = 0; i < A.rows; ++i)
      for (int64_t j = 0; j < A.cols; ++j)
        for (int64_t c = h * f.width; c < (h + 1) * f.width; ++c)
          dense[i * A.cols + j] += static_cast<double>(f.U[i * f.ldu + c]) * f.V[j * f.ldv + c];
    for (int64_t i = 0; i < A.rows; ++i)
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
        values[p * f.heads + h] = static_cast<T>(dense[i * A.cols + A.indices[p]]);
  }
  return values;
}

// Plain stands for the loops of the definition, Cuda for the kernel.
struct Plain {};
template <class E, class T, class I>
std::vector<T> run(E exec, const PatternView<I>& A, const Factors<T>& f) {
  std::vector<T> values = not_numbers<T>(A.nnz * f.heads);
  if constexpr (std::is_same_v<E, Plain>)
    kernels::plain::sddmm(A, f.heads, f.U.data(), f.ldu, f.V.data(), f.ldv, f.width, values.data());
  else
    kernels::sddmm(exec, A, f.heads, f.U.data(), f.ldu, f.V.data(), f.ldv, f.width, values.data());
  return values;
}

// f(A, factors) for every case; strides and schedules take turns.
template <class T, class I, class F>
void for_each_case(const F& f) {
  uint64_t turn = 0;
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    std::mt19937 random(static_cast<unsigned>(++turn));
    const auto stride = [&](uint64_t more) {
      return std::max<int64_t>(c.heads * c.width, 1) + static_cast<int64_t>(more);
    };
    const Matrix<T, I> A(c.lengths, c.cols, 1, false, random);
    Factors<T> factors{{}, {}, stride(turn % 3), stride(turn % 2), c.heads, c.width};
    factors.U = dense_rows<T>(A.rows(), c.heads * c.width, factors.ldu, random);
    factors.V = dense_rows<T>(c.cols, c.heads * c.width, factors.ldv, random);
    schedule(turn);
    f(A.pattern(), factors);
  }
}

TEST(Sddmm, PlainLoopsEqualDenseLoops) {
  for_each_case<double, int32_t>([](auto A, const auto& factors) {
    EXPECT_TRUE(same_bits(run(Plain{}, A, factors), by_dense_loops(A, factors)));
  });
}

template <class>
struct SddmmOfType : testing::Test {};
TYPED_TEST_SUITE(SddmmOfType, AllTypes);

TYPED_TEST(SddmmOfType, CudaEqualsPlainLoops) {
  for_each_case<typename TypeParam::Value, typename TypeParam::Index>(
      [](auto A, const auto& factors) { EXPECT_TRUE(same_bits(run(Cuda{}, A, factors), run(Plain{}, A, factors))); });
}

// Real numbers, whose sums do depend on the order: the order must not depend on the schedule or the index type.
TEST(Sddmm, SameBitsUnderEverySchedule) {
  const Lengths lengths{0, 33, 2, 0, 0, 40};
  std::mt19937 random(1), again(1);
  const Matrix<float, int32_t> narrow(lengths, 40, 1, false, random);
  const Matrix<float, int64_t> wide(lengths, 40, 1, false, again);
  Factors<float> factors{std::vector<float>(6 * 90), std::vector<float>(40 * 90), 90, 90, 2, 0};
  for (auto* v : {&factors.U, &factors.V})
    for (float& x : *v) x = std::uniform_real_distribution<float>(-1, 1)(random);
  for (int64_t width : {1, 6, 45}) {
    factors.width = width;
    schedule(0);
    const std::vector<float> first = run(Cuda{}, narrow.pattern(), factors);
    EXPECT_TRUE(same_bits(run(Cuda{}, wide.pattern(), factors), first));
    for (uint64_t seed = 1; seed <= (under_tsan ? 1 : 25); ++seed) {
      schedule(seed);
      EXPECT_TRUE(same_bits(run(Cuda{}, narrow.pattern(), factors), first));
    }
  }
}

// Grids much smaller than the pattern, chunks that begin and end inside rows and beside gaps of empty ones. Every
// layout, also those the launcher would not choose for this width.
TEST(Sddmm, AnyGridCoversThePattern) {
  Lengths lengths{0, 0, 50, 14, 0, 0, 0, 70, 1};
  if (!under_tsan) lengths.insert(lengths.end(), {0, 64, 64, 0, 7, 0, 0});
  std::mt19937 random(2);
  const Matrix<double, int32_t> matrix(lengths, 80, 1, false, random);
  const PatternView<int32_t> A = matrix.pattern();
  for (int64_t width : {5, 37, 150}) {
    if (under_tsan && width != 37) continue;
    Factors<double> f{{}, {}, 2 * width, 2 * width, 2, width};
    f.U = dense_rows<double>(A.rows, 2 * width, 2 * width, random);
    f.V = dense_rows<double>(A.cols, 2 * width, 2 * width, random);
    const std::vector<double> wanted = run(Plain{}, A, f);
    const auto check = [&](auto kernel) {
      std::vector<double> got = not_numbers<double>(A.nnz * 2);
      device::launch(Cuda{}, kernel, 2, 64, A, 2, f.U.data(), f.ldu, f.V.data(), f.ldv, width, got.data());
      EXPECT_TRUE(same_bits(got, wanted)) << "width " << width;
    };
    schedule(static_cast<uint64_t>(width));
    check(kernels::sddmm_threads<double, int32_t>);
    check(kernels::sddmm_chunks<8, 1, double, int32_t>);
    check(kernels::sddmm_chunks<8, 4, double, int32_t>);
    check(kernels::sddmm_chunks<16, 4, double, int32_t>);
    check(kernels::sddmm_chunks<32, 1, double, int32_t>);
    check(kernels::sddmm_chunks<32, 4, double, int32_t>);
  }
}

// An infinity stays in the entries of its row and column.
TEST(Sddmm, EntriesDoNotMix) {
  std::mt19937 random(3);
  const Matrix<float, int32_t> matrix({3, 0, 2, 9}, 9, 1, false, random);
  for (int64_t width : {1, 6, 40}) {
    Factors<float> factors{{}, {}, width, width, 1, width};
    factors.U = std::vector<float>(4 * width, 1.0f);
    factors.V = std::vector<float>(9 * width, 1.0f);
    factors.U[2 * width] = factors.V[5 * width] = INFINITY;
    EXPECT_TRUE(same_bits(run(Cuda{}, matrix.pattern(), factors), run(Plain{}, matrix.pattern(), factors)));
  }
}

// 300 ones: a sum kept in bfloat16 would stop at 256.
TEST(Sddmm, HalvesAddInFloat) {
  std::mt19937 random(4);
  const Matrix<bfloat16, int32_t> matrix({1}, 1, 1, false, random);
  const std::vector<bfloat16> ones(300, bfloat16(1.0f));
  const Factors<bfloat16> factors{ones, ones, 300, 300, 1, 300};
  EXPECT_EQ(run(Cuda{}, matrix.pattern(), factors)[0], 300.0f);
}

}  // namespace
}  // namespace gossamer::test
