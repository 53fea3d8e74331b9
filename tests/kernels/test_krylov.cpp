// SPDX-License-Identifier: BSD-3-Clause
// Passes over blocks of columns against their definition, and the same bits under every executor.
#include <gossamer/kernels/krylov.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "executors.h"

using namespace gossamer;
using kernels::Statement;

namespace {

template <class T>
std::vector<T> numbers(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> result(count);
  for (T& x : result) x = static_cast<T>(normal(generator));
  return result;
}

// r -= α q and r·r, then x += α p, p = z + β p, and a sum of four terms: as methods use it.
template <class T>
struct Blocks {
  int64_t n, k;
  std::vector<T> r, q, x, p, z, w;
  std::vector<double> one, alpha, minus, beta, rr, pz;

  Blocks(int64_t n_, int64_t k_)
      : n(n_),
        k(k_),
        r(numbers<T>(n * k, 1)),
        q(numbers<T>(n * k, 2)),
        x(numbers<T>(n * k, 3)),
        p(numbers<T>(n * k, 4)),
        z(numbers<T>(n * k, 5)),
        w(n * k),
        one(k, 1.0),
        alpha(numbers<double>(k, 6)),
        minus(alpha),
        beta(numbers<double>(k, 7)),
        rr(k),
        pz(k) {
    for (double& a : minus) a = -a;
  }
  std::vector<Statement<T>> statements() {
    return {{r.data(), 2, {r.data(), q.data()}, {one.data(), minus.data()}},
            {nullptr, 0, {r.data(), r.data()}, {}, rr.data()},
            {x.data(), 2, {x.data(), p.data()}, {one.data(), alpha.data()}},
            {p.data(), 2, {z.data(), p.data()}, {one.data(), beta.data()}},
            {nullptr, 0, {p.data(), z.data()}, {}, pz.data()},
            {w.data(), 3, {x.data(), p.data(), z.data()}, {beta.data(), one.data(), alpha.data()}},
            {w.data(), 4, {w.data(), r.data(), p.data(), z.data()}, {one.data(), one.data(), beta.data(), one.data()}},
            {q.data(), 1, {w.data()}, {alpha.data()}}};
  }
  std::vector<double> all() const {
    std::vector<double> result(rr);
    result.insert(result.end(), pz.begin(), pz.end());
    for (const auto* block : {&r, &q, &x, &p, &z, &w}) result.insert(result.end(), block->begin(), block->end());
    return result;
  }
};

template <class T>
void expect_the_definition(int64_t n, int64_t k, double tolerance) {
  Blocks<T> ours(n, k), plain(n, k);
  kernels::pass(Serial{}, n, k, ours.statements());
  kernels::plain::pass(n, k, plain.statements());
  const auto a = ours.all(), b = plain.all();
  for (size_t e = 0; e < a.size(); ++e)  // not ASSERT_NEAR for each, which takes longer than all the rest
    if (!(std::abs(a[e] - b[e]) <= tolerance * (1 + std::abs(b[e]) + std::sqrt(double(n)))))
      FAIL() << n << " x " << k << ", " << e << ": " << a[e] << " is not " << b[e];
}

}  // namespace

TEST(Krylov, EqualsTheDefinition) {
  for (const int64_t n : {0, 1, 2, 63, 64, 65, 2049, 9000})
    for (const int64_t k : {1, 2, 3, 16, 65}) {
      expect_the_definition<double>(n, k, 1e-13);
      expect_the_definition<float>(n, k, 1e-5);
    }
}

TEST(Krylov, TheSameBitsForEveryNumberOfThreads) {
  for (const int64_t k : {1, 5}) {
    const int64_t n = 60000;
    Blocks<double> serial(n, k), threads(n, k), backwards(n, k);
    kernels::pass(Serial{}, n, k, serial.statements());
    const test::Threads many(3);
    kernels::pass(many, n, k, threads.statements());
    kernels::pass(test::Backwards(5), n, k, backwards.statements());
    EXPECT_GT(many.parts, 1);
    EXPECT_EQ(serial.all(), threads.all());
    EXPECT_EQ(serial.all(), backwards.all());
  }
}

TEST(Krylov, AScaleOfZeroLeavesAColumnAsItIs) {
  Blocks<double> block(5000, 3);
  block.alpha[1] = block.minus[1] = 0;
  const auto r = block.r, x = block.x;
  kernels::pass(Serial{}, block.n, block.k, block.statements());
  for (int64_t i = 0; i < block.n; ++i) {
    ASSERT_EQ(block.r[i * 3 + 1], r[i * 3 + 1]);
    ASSERT_EQ(block.x[i * 3 + 1], x[i * 3 + 1]);
    ASSERT_NE(block.x[i * 3], x[i * 3]);
  }
}
