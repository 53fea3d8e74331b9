// SPDX-License-Identifier: BSD-3-Clause
// Both kinds of graph attention and their gradients against plain loops in long double, and finite differences of those
// loops, at the level GOSSAMER_SIMD chose (CTest runs all three); exp by itself.
#include <gossamer/kernels/gat.h>

#include <functional>

#include <gossamer/kernels/gatv2_backward.h>
#include <gossamer/kernels/transpose.h>
#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

using Real = long double;
using Reals = std::vector<Real>;
// aarch64's long double is a quadruple made by software: under qemu, one type's larger differences ran for ten minutes
// and on.
constexpr bool software_reals = std::numeric_limits<Real>::digits > 64;

// One problem of either kind. Inputs: x_src; then alpha_src, alpha_dst, alpha_edge or x_dst, att, x_edge.
template <class T, class I>
struct Problem {
  OwnedPattern<I> A;
  int64_t heads, width;
  bool second;  // GATv2
  bool edges;
  double slope = 0.2;
  Dropout dropout = {};
  std::vector<std::vector<T>> in;
  std::vector<T> G;

  Problem(Random& random, const OwnedPattern<I>& pattern, int64_t heads_, int64_t width_, bool second_, bool edges_)
      : A(pattern), heads(heads_), width(width_), second(second_), edges(edges_) {
    const int64_t d = second ? width : 1;
    const int64_t sizes[] = {A.cols * heads * width, second ? A.rows * heads * d : A.cols * heads,
                             second ? heads * d : A.rows * heads, edges ? A.nnz() * heads * d : 0};
    for (const int64_t size : sizes) in.push_back(random.template values<T>(size));
    G = random.template values<T>(A.rows * heads * width);
  }
  kernels::Gat<T, I> first_view() const {
    return {A.view(),
            heads,
            width,
            in[0].data(),
            in[1].data(),
            in[2].data(),
            edges ? in[3].data() : nullptr,
            static_cast<Sum<T>>(slope),
            dropout};
  }
  kernels::Gatv2<T, I> second_view() const {
    return {A.view(),
            heads,
            width,
            in[0].data(),
            in[1].data(),
            in[2].data(),
            edges ? in[3].data() : nullptr,
            static_cast<Sum<T>>(slope),
            dropout};
  }

  // Z and the four gradients.
  std::vector<std::vector<T>> run(const Pool& exec = Threads(1)) const {
    const T nan = rounded<T>(NAN);  // every element is to be written
    std::vector<T> Z(A.rows * heads * width, nan);
    std::vector<Sum<T>> lse(A.rows * heads, NAN), scratch((second ? 2 * A.nnz() : A.nnz() + 3 * A.rows) * heads, NAN);
    std::vector<I> indptr(A.cols + 1), indices(A.nnz()), perm(A.nnz());
    kernels::transpose(A.view(), indptr.data(), indices.data(), perm.data());
    const PatternView<I> At{A.cols, A.rows, A.nnz(), indptr.data(), indices.data()};
    std::vector<std::vector<T>> d;
    for (const auto& input : in) d.emplace_back(input.size(), nan);
    T* edge = edges ? d[3].data() : nullptr;
    if (second) {
      kernels::gatv2(exec, second_view(), Z.data(), lse.data());
      kernels::gatv2_backward(exec, second_view(), At, perm.data(), G.data(), Z.data(), lse.data(), scratch.data(),
                              {d[0].data(), d[1].data(), d[2].data(), edge});
    } else {
      kernels::gat(exec, first_view(), Z.data(), lse.data());
      kernels::gat_backward(exec, first_view(), At, perm.data(), G.data(), Z.data(), lse.data(), scratch.data(),
                            {d[0].data(), d[1].data(), d[2].data(), edge});
    }
    d.insert(d.begin(), Z);
    return d;
  }

  // Z as its definition reads, in long double.
  Reals plain(const std::vector<Reals>& x) const {
    Reals Z(A.rows * heads * width);
    const Real* edge = edges ? x[3].data() : nullptr;
    const auto exact_slope = static_cast<Real>(static_cast<Sum<T>>(slope));
    const auto view = [&](auto kind) -> decltype(kind) {
      return {A.view(), heads, width, x[0].data(), x[1].data(), x[2].data(), edge, exact_slope, dropout};
    };
    if (second)
      kernels::plain::gatv2(view(kernels::Gatv2<Real, I>()), Z.data());
    else
      kernels::plain::gat(view(kernels::Gat<Real, I>()), Z.data());
    return Z;
  }
  std::vector<Reals> exact_inputs() const {
    std::vector<Reals> x;
    for (const auto& input : in) {
      x.emplace_back();
      for (const T value : input) x.back().push_back(static_cast<Sum<T>>(value));
    }
    return x;
  }
  // d⟨Z, G⟩ by central differences; an input within the step of leaky_relu's kink would spoil it, but none is. Sums of
  // 16-bit numbers are often 0, where the slope is the one on the left: they get differences to the left.
  std::vector<Reals> plain_gradients() const {
    constexpr Real step = 1e-6L, right = sizeof(T) == 2 ? 0 : step;
    std::vector<Reals> x = exact_inputs(), d;
    const auto loss = [&] {
      const Reals Z = plain(x);
      Real sum = 0;
      for (size_t k = 0; k < Z.size(); ++k) sum += Z[k] * static_cast<Sum<T>>(G[k]);
      return sum;
    };
    for (Reals& input : x) {
      d.emplace_back();
      for (Real& value : input) {
        const Real before = value;
        value = before + right;
        const Real above = loss();
        value = before - step;
        const Real below = loss();
        value = before;
        d.back().push_back((above - below) / (step + right));
      }
    }
    return d;
  }
  void expect_as_plain(bool gradients) const {
    SCOPED_TRACE(testing::Message() << (second ? "v2, " : "v1, ") << A.rows << " x " << A.cols << ", nnz " << A.nnz()
                                    << ", heads " << heads << ", width " << width << ", edges " << edges);
    const auto got = run();
    std::vector<Reals> want = {plain(exact_inputs())};
    if (gradients)
      for (Reals& d : plain_gradients()) want.push_back(d);
    // 16-bit: Z is rounded before the backward reads it. Differences carry an error of about 1e-10 themselves.
    const Real close = std::is_same_v<T, bfloat16>  ? 3e-2L
                       : std::is_same_v<T, float16> ? 4e-3L
                       : std::is_same_v<T, float>   ? 2e-5L
                                                    : 1e-9L;
    for (size_t k = 0; k < want.size(); ++k) {
      ASSERT_EQ(got[k].size(), want[k].size());
      for (size_t n = 0; n < want[k].size(); ++n)
        ASSERT_NEAR(static_cast<double>(static_cast<Sum<T>>(got[k][n])), static_cast<double>(want[k][n]),
                    static_cast<double>(close * (1 + std::abs(want[k][n]))))
            << "output " << k << ", element " << n;
    }
  }
};

// A graph with an empty row, self-loops, a row of one entry, parallel edges and one longer than two blocks.
template <class I>
OwnedPattern<I> small_graph(int64_t long_row = 70) {
  std::vector<I> many(long_row);
  for (int64_t k = 0; k < long_row; ++k) many[k] = static_cast<I>(k % 5);
  return {5, {{0, 2, 4}, {}, {3}, {1, 1, 1, 2}, many, {0, 1, 2, 3, 4}}};
}

template <class Pair>
struct Attention : testing::Test {};
TYPED_TEST_SUITE(Attention, AllTypes);

TYPED_TEST(Attention, EqualsItsDefinitionAtAllWidths) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(20);
  for (const bool second : {false, true})
    for (const bool edges : {false, true}) {
      for (const int64_t width : {0, 1, 2, 3, 7, 8, 16, 17, 33, 64, 71})
        for (const int64_t heads : {1, 9})
          Problem<T, I>(random, small_graph<I>(), heads, width, second, edges).expect_as_plain(false);
      for (const auto& [heads, width] : {std::pair(2, 1), {2, 5}, {2, 16}, {9, 8}, {5, 32}}) {
        if (sizeof(T) == 2 && heads > 2) continue;  // Z is rounded before the backward reads it: sums this long show it
        if (software_reals && width > 5) continue;
        if (sizeof(I) == 8 && heads > 2) continue;  // how wide indices are has nothing to do with these sums
        // Differences for every edge, head and column take a while, with edge features and with many columns the most.
        const int64_t long_row = heads * width > 100 || (heads > 2 && edges) ? 3 : 35;
        Problem<T, I> problem(random, small_graph<I>(long_row), heads, width, second, edges);
        problem.expect_as_plain(true);
        if (heads > 2) continue;  // a mask has no more to do with widths than this
        problem.dropout = Dropout(0.4, 7);
        problem.expect_as_plain(true);
        std::vector<int64_t> keys(problem.A.nnz());  // in no order, and some of them twice
        for (size_t k = 0; k < keys.size(); ++k) keys[k] = static_cast<int64_t>(mix_bits(k / 2));
        problem.dropout.keys = keys.data();
        problem.expect_as_plain(true);
      }
    }
}

TYPED_TEST(Attention, OddShapes) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(21);
  const OwnedPattern<I> shapes[] = {{0, {}}, {5, {}}, {0, {{}, {}}}, {7, {{}, {}, {}}}, {1, {{0}, {}, {0}}}};
  for (const auto& A : shapes)
    for (const bool second : {false, true})
      for (const int64_t width : {0, 1, 6}) Problem<T, I>(random, A, 2, width, second, true).expect_as_plain(true);
}

TYPED_TEST(Attention, BitwiseTheSameOnEveryExecutor) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Random random(22);
  const auto A = power_law_pattern<I>(20000, 3000);
  for (const bool second : {false, true}) {
    Problem<T, I> problem(random, A, 3, 5, second, true);
    problem.dropout = Dropout(0.3, 1);
    const auto want = problem.run();
    for (const int64_t threads : {2, 3, 7}) {
      const Threads exec(threads);
      const auto got = problem.run(exec);
      for (size_t k = 0; k < want.size(); ++k) expect_same_bits(got[k], want[k]);
      EXPECT_GE(exec.parts, threads);
    }
  }
}

// Scores far beyond what exp can hold, in either direction.
TEST(AttentionScores, LargeScoresDoNotOverflow) {
  Random random(23);
  Problem<float, int32_t> problem(random, {3, {{0, 1, 2}}}, 1, 2, false, false);
  problem.in[1] = {1000, 990, -40000};
  const auto Z = problem.run()[0];
  const double s = 1 / (1 + std::exp(-10.0));
  for (int c = 0; c < 2; ++c) EXPECT_NEAR(Z[c], s * problem.in[0][c] + (1 - s) * problem.in[0][2 + c], 1e-6);
}

// A score of -∞ has no weight, wherever it stands; a row of them has no softmax.
TEST(AttentionScores, MinusInfinity) {
  Random random(24);
  std::vector<int32_t> many(40, 0);
  many.back() = 1;
  Problem<double, int32_t> problem(random, {2, {many, {0, 0}}}, 1, 3, false, false);
  problem.in[1] = {-INFINITY, 0.5};
  const auto Z = problem.run()[0];
  for (int c = 0; c < 3; ++c) {
    EXPECT_DOUBLE_EQ(Z[c], problem.in[0][3 + c]);
    EXPECT_TRUE(std::isnan(Z[3 + c]));
  }
}

template <class S>
void expect_exp(int digits) {
  simd([=]<int bytes> {
    constexpr int lanes = bytes / sizeof(S);
    for (int64_t k = -200000; k <= 200000; ++k) {
      const S x = static_cast<S>(ExpOf<S>::highest) * static_cast<S>(k) / 200000;
      if (x < ExpOf<S>::lowest) continue;
      Vec<S, lanes> v = Vec<S, lanes>{} + x;
      exp_lanes<lanes, S>(v);
      const Real want = std::exp(static_cast<Real>(x)), error = std::abs(v[lanes - 1] - want) / want;
      if (error > std::ldexp(2.0L, -digits)) ADD_FAILURE() << "exp(" << x << ") is off by " << error;
    }
    for (const S x :
         {S{-1000}, -std::numeric_limits<S>::infinity(), std::numeric_limits<S>::infinity(), S(NAN), S{0}}) {
      Vec<S, lanes> v = Vec<S, lanes>{} + x;
      S one = x;
      exp_lanes<lanes, S>(v);
      exp_lanes<1, S>(one);
      const S got = v[0], want = std::exp(x);
      EXPECT_TRUE((got == want && one == want) || (std::isnan(got) && std::isnan(one) && std::isnan(want))) << x;
    }
  });
}

TEST(Exp, IsWithinTwoUnitsInTheLastPlace) {
  expect_exp<float>(23);
  expect_exp<double>(52);
}

}  // namespace
}  // namespace gossamer::test
