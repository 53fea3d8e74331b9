// SPDX-License-Identifier: BSD-3-Clause
// L D U and L D Lᵀ along a frozen pattern: their product is the matrix, they are those of the plain loops of factor.h,
// and the same for every schedule. Shapes: nothing, a diagonal, a chain, arrows both ways, rows around the edges of a
// warp and longer than a block of any kind.
#include "factor.cuh"

#include <functional>

#include "matrix.h"

namespace gossamer::test {
namespace {

struct Shape {
  const char* name;
  int64_t n;
  std::function<bool(int64_t i, int64_t j)> stored;  // besides the diagonal
};

std::vector<Shape> shapes() {
  const auto scattered = [](int64_t i, int64_t j) { return (i * 7919 + j * 104729) % 23 == 0; };
  const auto chain = [](int64_t i, int64_t j) { return i - j == 1 || j - i == 1; };
  if (under_tsan) return {{"chain", 9, chain}, {"dense", 7, [](auto, auto) { return true; }}};
  std::vector<Shape> all = {
      {"nothing", 0, scattered},
      {"diagonal", 70, [](auto, auto) { return false; }},
      {"chain", 70, chain},
      {"dense", 33, [](auto, auto) { return true; }},
      {"scattered", 90, scattered},
      // Fills in completely: the first row and column are full.
      {"arrow up", 40, [](int64_t i, int64_t j) { return i == 0 || j == 0; }},
      // Fills in nowhere: the last row, with half of all entries, is longer than the threads of a block.
      {"arrow down", 1100, [](int64_t i, int64_t j) { return i == 1099 || j == 1099; }},
      {"lower", 60, [=](int64_t i, int64_t j) { return i > j && scattered(i, j); }},
  };
  for (const int64_t length : {1, 31, 32, 33})  // of the last row and of the last column, before the diagonal
    all.push_back({"one long row", 34, [=](int64_t i, int64_t j) {
                     return (i == 33 && j >= 33 - length) || (j == 33 && i >= 33 - length);
                   }});
  return all;
}

// A matrix that needs no pivoting, on what it fills in; symmetric, or not.
template <class I>
struct Factored {
  int64_t n, heads;
  kernels::Filled<I> F;
  std::vector<double> values, dense;  // dense: (heads, n, n)

  Factored(const Shape& shape, int64_t heads_, bool symmetric, std::mt19937& random)
      : n(shape.n), heads(heads_), dense(heads * n * n, 0.0) {
    std::vector<I> indptr{0}, indices;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j)
        if (i == j || shape.stored(i, j) || (symmetric && shape.stored(j, i))) {
          indices.push_back(static_cast<I>(j));
          for (int64_t h = 0; h < heads; ++h) {
            const double number = static_cast<double>(random() % 1000) / 1000 - 0.5;
            dense[(h * n + i) * n + j] = i == j ? static_cast<double>(n) + 2 + number : number;
            if (symmetric && j < i) dense[(h * n + i) * n + j] = dense[(h * n + j) * n + i];
          }
        }
      indptr.push_back(static_cast<I>(indices.size()));
    }
    F = kernels::fill(PatternView<I>{n, n, indptr.back(), indptr.data(), indices.data()});
    if (symmetric) keep_lower();
    for (int64_t i = 0; i < n; ++i)
      for (int64_t p = F.indptr[i]; p < F.indptr[i + 1]; ++p)
        for (int64_t h = 0; h < heads; ++h) values.push_back(dense[(h * n + i) * n + F.indices[p]]);
    values.shrink_to_fit(), F.indices.shrink_to_fit(), F.indptr.shrink_to_fit(), F.diagonal.shrink_to_fit();
  }

  void keep_lower() {
    kernels::Filled<I> L{{0}, {}, {}};
    for (int64_t i = 0; i < n; ++i) {
      L.indices.insert(L.indices.end(), F.indices.begin() + F.indptr[i], F.indices.begin() + F.diagonal[i] + 1);
      L.indptr.push_back(static_cast<I>(L.indices.size()));
      L.diagonal.push_back(L.indptr.back() - 1);
    }
    F = L;
  }

  std::vector<double> on_device(bool symmetric) const {
    std::vector<double> factors = values;
    std::vector<int> ready(n, 0);
    unsigned long long tickets = 0;
    if (symmetric)
      kernels::factor_ldlt(Cuda{}, F.view(), heads, factors.data(), {&tickets, ready.data()});
    else
      kernels::factor_lu(Cuda{}, F.view(), F.diagonal.data(), heads, factors.data(), {&tickets, ready.data()});
    return factors;
  }
  std::vector<double> by_plain_loops(bool symmetric) const {
    std::vector<double> factors = values;
    if (symmetric)
      kernels::plain::factor_ldlt(F.view(), heads, factors.data());
    else
      kernels::plain::factor_lu(F.view(), F.diagonal.data(), heads, factors.data());
    return factors;
  }

  // The largest difference between the matrix and the product of its factors, Σ_k l_ik d_k u_kj.
  double error(const std::vector<double>& factors, bool symmetric) const {
    double most = 0;
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> product(n * n, 0.0), upper(n * n, 0.0);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t p = F.indptr[i]; p < F.indptr[i + 1]; ++p) {
          const int64_t j = F.indices[p];
          if (i == j) upper[i * n + i] = 1;
          if (j > i) upper[i * n + j] = factors[p * heads + h];
          if (symmetric && j < i) upper[j * n + i] = factors[p * heads + h];
        }
      for (int64_t i = 0; i < n; ++i)
        for (int64_t p = F.indptr[i]; p <= F.diagonal[i]; ++p) {
          const int64_t k = F.indices[p];
          const double d = factors[F.diagonal[k] * heads + h], l = k == i ? 1 : factors[p * heads + h];
          for (int64_t j = 0; j < n; ++j) product[i * n + j] += l * d * upper[k * n + j];
        }
      for (int64_t e = 0; e < n * n; ++e) {
        const double distance = std::abs(product[e] - dense[h * n * n + e]);
        most = distance <= most ? most : distance;  // NaN stays
      }
    }
    return most;
  }
};

template <class I>
struct FactorOfIndex : testing::Test {};
using IndexTypes = testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(FactorOfIndex, IndexTypes);

TYPED_TEST(FactorOfIndex, TheProductIsTheMatrix) {
  uint64_t turn = 0;
  for (const Shape& shape : shapes())
    for (const int64_t heads : {1, 3})
      for (const bool symmetric : {false, true}) {
        if (heads > 1 && shape.n > 500) continue;
        std::mt19937 random(static_cast<unsigned>(++turn));
        const Factored<TypeParam> A(shape, heads, symmetric, random);
        schedule(turn);
        const auto got = A.on_device(symmetric), wanted = A.by_plain_loops(symmetric);
        EXPECT_LE(A.error(got, symmetric), 1e-13 * static_cast<double>(shape.n)) << shape.name << " " << symmetric;
        for (size_t k = 0; k < got.size(); ++k)
          ASSERT_NEAR(got[k], wanted[k], 1e-13 * (10 + std::abs(wanted[k]))) << shape.name << " " << symmetric;
      }
}

TEST(Factor, TheSameBitsForEverySchedule) {
  const Shape shape{"scattered", under_tsan ? 10 : 45, [](int64_t i, int64_t j) { return (i * 31 + j * 17) % 7 == 0; }};
  for (const bool symmetric : {false, true})
    for (const int64_t heads : {1, 2}) {
      std::mt19937 random(4);
      const Factored<int32_t> A(shape, heads, symmetric, random);
      std::vector<double> first;
      for (uint64_t seed = 0; seed < (under_tsan ? 2 : 24); ++seed) {
        schedule(seed);
        const auto factors = A.on_device(symmetric);
        if (first.empty()) first = factors;
        EXPECT_TRUE(same_bits(factors, first));
      }
    }
}

TEST(Factor, NoHeadsAreNoWork) {
  std::mt19937 random(1);
  const Factored<int32_t> A({"diagonal", 5, [](auto, auto) { return false; }}, 0, false, random);
  EXPECT_TRUE(A.on_device(false).empty());
}

// What follows a lost pivot is not finite, and nobody waits for ever.
TEST(Factor, AZeroPivotIsSeen) {
  for (const bool symmetric : {false, true}) {
    std::mt19937 random(2);
    Factored<int32_t> A({"chain", 8, [](int64_t i, int64_t j) { return i - j == 1 || j - i == 1; }}, 1, symmetric,
                        random);
    A.values[0] = 0;  // entry (0, 0)
    const auto factors = A.on_device(symmetric);
    EXPECT_FALSE(std::all_of(factors.begin(), factors.end(), [](double f) { return std::isfinite(f); }));
  }
}

}  // namespace
}  // namespace gossamer::test
