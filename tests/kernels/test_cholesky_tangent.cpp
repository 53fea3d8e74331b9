// SPDX-License-Identifier: BSD-3-Clause
// Derivatives of the Cholesky factor against differences: L along a direction, the gradient of a sum over L, and that
// gradient along a direction.
#include <gossamer/kernels/cholesky_tangent.h>
#include <gossamer/kernels/selected_inverse.h>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

// A random symmetric pattern with its diagonal; every fifth row has no other entry.
OwnedPattern<int32_t> symmetric_pattern(Random& random, int64_t n, int64_t one_in) {
  std::vector<std::vector<int32_t>> rows(n);
  for (int32_t i = 0; i < n; ++i)
    for (int32_t j = 0; j <= i; ++j) {
      if (i != j && (i % 5 == 0 || j % 5 == 0 || random.below(one_in) > 0)) continue;
      rows[i].push_back(j);
      if (i != j) rows[j].push_back(i);
    }
  for (auto& row : rows) std::sort(row.begin(), row.end());
  return {n, rows};
}

// Values that are the same at both of two mirror images.
std::vector<double> symmetric_values(Random& random, const OwnedPattern<int32_t>& A, double diagonal) {
  std::vector<double> dense(A.rows * A.rows), values(A.nnz());
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t j = 0; j <= i; ++j) dense[i * A.rows + j] = dense[j * A.rows + i] = random.real();
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      values[p] = dense[i * A.rows + A.indices[p]] + (A.indices[p] == i ? diagonal : 0);
  return values;
}

std::vector<double> moved(const std::vector<double>& values, const std::vector<double>& direction, double step) {
  std::vector<double> result = values;
  for (size_t p = 0; p < values.size(); ++p) result[p] += step * direction[p];
  return result;
}

// The entries of L are on and below the diagonals; elsewhere nothing is said of the numbers.
void clear_above(const AssemblyTree& tree, std::vector<double>& fronts) {
  for (int64_t s = 0; s < tree.count(); ++s)
    for (int64_t c = 0; c < tree.columns(s); ++c)
      std::fill_n(fronts.begin() + tree.value_ptr[s] + c * tree.height(s), c, 0.0);
}

TEST(CholeskyTangent, EqualsDifferences) {
  Random random(1);
  constexpr double h = 1e-5;
  const Serial serial;
  const Pool pool(serial);
  for (const int64_t n : {1, 2, 9, 33, 60})
    for (const int64_t one_in : {1, 4, 15}) {
      const OwnedPattern<int32_t> A = symmetric_pattern(random, n, one_in);
      const auto tree = kernels::assembly_tree(A.view(), random.permutation<int32_t>(n));
      const auto values = symmetric_values(random, A, 3.0 * static_cast<double>(n));
      const auto direction = symmetric_values(random, A, 0), other = symmetric_values(random, A, 0);
      auto Y = random.values<double>(tree.size());
      clear_above(tree, Y);
      const auto factor = [&](const std::vector<double>& v) {
        std::vector<double> L(tree.size());
        EXPECT_EQ(kernels::factor_cholesky(pool, tree, v.data(), L.data()), -1);
        clear_above(tree, L);
        return L;
      };
      const auto gradient = [&](const std::vector<double>& v) {  // of 2 Σ Y L
        std::vector<double> S = Y;
        kernels::cholesky_gradient(pool, tree, factor(v).data(), S.data());
        return S;
      };
      const auto L = factor(values), S = gradient(values);
      const auto L1 = factor(moved(values, direction, h)), L0 = factor(moved(values, direction, -h));
      std::vector<double> X(tree.size());
      kernels::cholesky_tangent(pool, tree, L.data(), direction.data(), X.data());
      double sum = 0, along = 0;
      for (size_t k = 0; k < L.size(); ++k) {
        ASSERT_NEAR(X[k], (L1[k] - L0[k]) / (2 * h), 1e-8) << n << ": " << k;
        sum += 2 * Y[k] * X[k];
      }
      std::vector<double> on_A(A.nnz());
      kernels::gather(tree, S.data(), 1.0, on_A.data());
      for (size_t p = 0; p < on_A.size(); ++p) along += on_A[p] * direction[p];
      EXPECT_NEAR(along, sum, 1e-9 * (1 + std::abs(sum))) << n;
    }
}

}  // namespace
}  // namespace gossamer::test
