// SPDX-License-Identifier: BSD-3-Clause
// Aggregates: every node that hangs on something is in one, T carries the vectors exactly and is orthonormal, the
// smoothing is its formula. The two halves of a cycle against dense loops, for every executor.
#include <gossamer/kernels/aggregate.h>
#include <gossamer/kernels/cycle.h>

#include <numeric>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

// A symmetric pattern with a whole diagonal, and a diagonally dominant matrix on it.
struct Sample {
  OwnedPattern<int32_t> P;
  std::vector<double> values;

  Sample(Random& random, int64_t n, int64_t sparsity) : P(pattern(random, n, sparsity)), values(P.nnz()) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t p = P.indptr[i]; p < P.indptr[i + 1]; ++p)
        values[p] = P.indices[p] == i ? static_cast<double>(n) : random.real();
  }
  static OwnedPattern<int32_t> pattern(Random& random, int64_t n, int64_t sparsity) {
    std::vector<std::vector<bool>> there(n, std::vector<bool>(n));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) there[i][j] = there[j][i] = i == j || random.below(sparsity) == 0;
    std::vector<std::vector<int32_t>> rows(n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (there[i][j]) rows[i].push_back(static_cast<int32_t>(j));
    return OwnedPattern<int32_t>(n, rows);
  }
  Csr<double, int32_t> view() const { return {P.view(), values.data()}; }
};

std::vector<int64_t> nodes_of(int64_t n, int64_t size) {
  std::vector<int64_t> ptr;
  for (int64_t i = 0; i <= n; i += size) ptr.push_back(i);
  return ptr;
}

TEST(Aggregate, TakesEveryNodeThatHangsOnSomething) {
  Random random(1);
  for (const int64_t sparsity : {2, 10, 40}) {
    const Sample A(random, 60, sparsity);
    for (const int64_t size : {1, 3}) {
      const kernels::NodeRows rows(nodes_of(60, size));
      const auto G = kernels::strong_graph(A.view(), rows, 0.001);
      const auto groups = kernels::aggregate(G);
      std::vector<int64_t> members(groups.count, 0);
      for (int64_t N = 0; N < rows.nodes(); ++N) {
        const bool alone = G.indptr[N] == G.indptr[N + 1];
        ASSERT_EQ(groups.of_node[N] < 0, alone);
        if (!alone) ++members[groups.of_node[N]];
      }
      for (const int64_t count : members) EXPECT_GE(count, 1);
    }
  }
}

TEST(Aggregate, LeavesWeakEntriesOut) {
  const OwnedPattern<int32_t> P(3, {{0, 1, 2}, {0, 1}, {0, 2}});
  const std::vector<double> values = {4, -1, -0.1, -1, 4, -0.1, 4};
  const Csr<double, int32_t> A{P.view(), values.data()};
  const auto G = kernels::strong_graph(A, kernels::NodeRows(nodes_of(3, 1)), 0.08);
  EXPECT_EQ(G.indptr, (std::vector<int32_t>{0, 1, 2, 2}));
  EXPECT_EQ(G.indices, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(kernels::aggregate(G).of_node, (std::vector<int32_t>{0, 0, -1}));
  const auto kept = kernels::without_weak(A, G);
  EXPECT_EQ(kept.indices, (std::vector<int32_t>{0, 1, 0, 1, 2}));

  const PatternView<int32_t> filtered{3, 3, 5, kept.indptr.data(), kept.indices.data()};
  std::vector<double> S(5);
  EXPECT_NEAR(kernels::smoothing(A, filtered, 0.5, S.data()), 1.25, 1e-15);
  const std::vector<double> want = {1 - 0.5 * 3.9 / 4, 0.5 / 4, 0.5 / 4, 0.5, 1 - 0.5 * 3.9 / 4};
  for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(S[k], want[k], 1e-15);
}

TEST(Aggregate, CarriesTheVectors) {
  Random random(2);
  const Sample A(random, 60, 10);
  for (const int64_t vectors : {1, 3}) {
    const kernels::NodeRows rows(nodes_of(60, 2));
    const auto groups = kernels::aggregate(kernels::strong_graph(A.view(), rows, 0.001));
    auto B = random.values<double>(60 * vectors);
    for (int64_t i = 0; i < 60 && vectors == 3; ++i) B[3 * i + 1] = 2 * B[3 * i];  // depends on the first
    const auto T = kernels::tentative(groups, rows, B, vectors);
    const int64_t columns = T.node_ptr.back();
    std::vector<double> gram(columns * columns, 0.0);
    for (int64_t i = 0; i < 60; ++i)
      for (int64_t p = T.indptr[i]; p < T.indptr[i + 1]; ++p)
        for (int64_t q = T.indptr[i]; q < T.indptr[i + 1]; ++q)
          gram[T.indices[p] * columns + T.indices[q]] += T.values[p] * T.values[q];
    for (int64_t a = 0; a < columns * columns; ++a) EXPECT_NEAR(gram[a], a % (columns + 1) == 0, 1e-12);
    for (int64_t i = 0; i < 60; ++i)
      for (int64_t c = 0; c < vectors; ++c) {
        if (T.indptr[i] == T.indptr[i + 1]) continue;
        double product = 0;
        for (int64_t p = T.indptr[i]; p < T.indptr[i + 1]; ++p)
          product += T.values[p] * T.B[T.indices[p] * vectors + c];
        EXPECT_NEAR(product, B[i * vectors + c], 1e-12);
      }
  }
}

TEST(Cycle, IsTwoSweepsAndACorrection) {
  Random random(3);
  for (const int64_t n : {1, 5, 40})
    for (const int64_t width : {1, 3, 37}) {
      const Sample A(random, n, 6);
      const int64_t columns = (n + 2) / 3;
      std::vector<std::vector<int32_t>> rows(n);
      for (int64_t i = 0; i < n; ++i)
        if (i != 2) rows[i].push_back(static_cast<int32_t>(i / 3));
      const OwnedPattern<int32_t> P(columns, rows);
      const auto p = random.values<double>(P.nnz()), b = random.values<double>(n * width),
                 e = random.values<double>(columns * width);
      std::vector<int32_t> diagonal(n);
      std::vector<double> inverse(n);
      for (int64_t i = 0; i < n; ++i) {
        diagonal[i] = static_cast<int32_t>(
            place_of(A.P.indices.data(), A.P.indptr[i], A.P.indptr[i + 1], static_cast<int32_t>(i)));
        inverse[i] = 1 / A.values[diagonal[i]];
      }
      const kernels::CycleLevel<double, int32_t> level{A.view(), {P.view(), p.data()}, diagonal.data(), inverse.data()};
      // A sweep in this order over x, row by row.
      const auto sweep = [&](std::vector<double>& x, int64_t i) {
        for (int64_t c = 0; c < width; ++c) {
          double sum = b[i * width + c];
          for (int64_t q = A.P.indptr[i]; q < A.P.indptr[i + 1]; ++q)
            if (q != diagonal[i]) sum -= A.values[q] * x[A.P.indices[q] * width + c];
          x[i * width + c] = sum * inverse[i];
        }
      };
      std::vector<double> want(n * width, 0.0), restricted(columns * width, 0.0);
      for (int64_t i = 0; i < n; ++i) sweep(want, i);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < width; ++c) {
          double r = b[i * width + c];
          for (int64_t q = A.P.indptr[i]; q < A.P.indptr[i + 1]; ++q)
            r -= A.values[q] * want[A.P.indices[q] * width + c];
          for (int64_t q = P.indptr[i]; q < P.indptr[i + 1]; ++q) restricted[P.indices[q] * width + c] += p[q] * r;
        }
      const auto run = [&](const Pool& exec, std::vector<double>& x, std::vector<double>& coarse) {
        x.assign(n * width, NAN), coarse.assign(columns * width, NAN);
        kernels::descend(exec, level, b.data(), width, x.data(), coarse.data());
      };
      std::vector<double> x, coarse, other, other_coarse;
      run(Serial{}, x, coarse);
      for (int64_t k = 0; k < n * width; ++k) EXPECT_NEAR(x[k], want[k], 1e-12);
      for (int64_t k = 0; k < columns * width; ++k) EXPECT_NEAR(coarse[k], restricted[k], 1e-10);
      const Threads threads(3);
      run(threads, other, other_coarse);
      EXPECT_EQ(x, other);
      EXPECT_EQ(coarse, other_coarse);

      for (int64_t i = 0; i < n; ++i)
        for (int64_t q = P.indptr[i]; q < P.indptr[i + 1]; ++q)
          for (int64_t c = 0; c < width; ++c) want[i * width + c] += p[q] * e[P.indices[q] * width + c];
      for (int64_t i = n - 1; i >= 0; --i) sweep(want, i);
      kernels::ascend(Pool(Serial{}), level, b.data(), e.data(), width, x.data());
      kernels::ascend(Pool(threads), level, b.data(), e.data(), width, other.data());
      for (int64_t k = 0; k < n * width; ++k) EXPECT_NEAR(x[k], want[k], 1e-12);
      EXPECT_EQ(x, other);
    }
}

}  // namespace
}  // namespace gossamer::test
