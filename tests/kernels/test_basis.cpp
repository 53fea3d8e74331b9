// SPDX-License-Identifier: BSD-3-Clause
// A basis of long vectors: the sums as they are written, and the same bits for every executor.
#include <gossamer/kernels/basis.h>

#include <gtest/gtest.h>

#include <vector>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

using kernels::basis_chunk;

struct Results {
  std::vector<double> h, w, out;
  bool operator==(const Results&) const = default;
};

template <class E>
Results all_of(const E& exec, int64_t rows, int64_t n, const std::vector<double>& V, std::vector<double> w,
               const std::vector<double>& S) {
  Results r{std::vector<double>(rows), {}, std::vector<double>(2 * n)};
  kernels::coefficients(exec, rows, n, V.data(), w.data(), r.h.data());
  kernels::subtract(exec, rows, n, V.data(), r.h.data(), w.data());
  kernels::combine(exec, 2, rows, n, S.data(), V.data(), r.out.data());
  r.w = std::move(w);
  return r;
}

TEST(Basis, SumsAsWritten) {
  Random random(1);
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{17}, basis_chunk, 5 * basis_chunk + 3})
    for (const int64_t rows : {0, 1, 5}) {
      const auto V = random.values<double>(rows * n), w = random.values<double>(n), S = random.values<double>(2 * rows);
      const Results r = all_of(Serial{}, rows, n, V, w, S);
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (int64_t p = 0; p < n; ++p) sum += V[i * n + p] * w[p];
        EXPECT_NEAR(r.h[i], sum, 1e-9 * (1 + static_cast<double>(n)));
      }
      for (int64_t p = 0; p < n; ++p) {
        double rest = w[p], first = 0, second = 0;
        for (int64_t i = 0; i < rows; ++i) {
          rest -= r.h[i] * V[i * n + p];
          first += S[i] * V[i * n + p];
          second += S[rows + i] * V[i * n + p];
        }
        EXPECT_NEAR(r.w[p], rest, 1e-9 * (1 + static_cast<double>(n)));
        EXPECT_NEAR(r.out[p], first, 1e-12);
        EXPECT_NEAR(r.out[n + p], second, 1e-12);
      }
    }
}

TEST(Basis, SameBitsForEveryExecutor) {
  Random random(2);
  const int64_t n = 9 * basis_chunk + 5, rows = 4;
  const auto V = random.values<double>(rows * n), w = random.values<double>(n), S = random.values<double>(2 * rows);
  const Results want = all_of(Serial{}, rows, n, V, w, S);
  const Threads threads(3);
  EXPECT_TRUE(all_of(threads, rows, n, V, w, S) == want);
  EXPECT_EQ(threads.parts, 10);
  EXPECT_TRUE(all_of(Backwards(3), rows, n, V, w, S) == want);
}

}  // namespace
}  // namespace gossamer::test
