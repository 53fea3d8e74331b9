// SPDX-License-Identifier: BSD-3-Clause
// Probing a matrix that is known: the places found are those of its entries, or the row says that it needs more probes.
#include <gossamer/kernels/probe.h>

#include <set>

#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

using Places = std::set<std::pair<int64_t, int64_t>>;

template <class T>
struct Probed {
  std::vector<int8_t> status;
  Places found;
};

// Products of a dense J with all seeds, in T, and what is read off them.
template <class T>
Probed<T> probe(const std::vector<T>& J, int64_t m, int64_t n, int64_t buckets, uint64_t seed) {
  const auto probes = kernels::Probes::of<T>(n, buckets, seed);
  const int64_t count = probes.count();
  std::vector<T> seeds(count * n), Y(count * m), v(n), product(m);
  kernels::probe_seeds(probes, 0, count, seeds.data());
  kernels::probe_direction(probes, v.data());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      product[i] += J[i * n + j] * v[j];
      for (int64_t s = 0; s < count; ++s) Y[s * m + i] += J[i * n + j] * seeds[s * n + j];
    }
  std::vector<int64_t> open(m);
  for (int64_t i = 0; i < m; ++i) open[i] = i;
  std::vector<int8_t> status(m, -1);
  const auto places =
      kernels::peel_rows(Pool(Serial{}), probes, m, Y.data(), product.data(), m, open.data(), status.data());
  return {status, Places(places.begin(), places.end())};
}

template <class T>
std::vector<T> random_matrix(Random& random, int64_t m, int64_t n, int64_t per_row) {
  std::vector<T> J(m * n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t k = 0; k < per_row; ++k) J[i * n + random.below(n)] = rounded<T>(random.real() + 2);
  return J;
}

template <class T>
Places places_of(const std::vector<T>& J, int64_t m, int64_t n, const std::vector<int8_t>& status) {
  Places places;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (J[i * n + j] != 0 && status[i] == 1) places.emplace(i, j);
  return places;
}

template <class T>
struct Probe : testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Probe, Reals);

TYPED_TEST(Probe, FindsTheEntries) {
  Random random(50);
  const int64_t m = 300, n = 700;  // more columns than a float's digit holds
  for (const int64_t per_row : {0, 1, 5, 9}) {
    const auto J = random_matrix<TypeParam>(random, m, n, per_row);
    const auto [status, found] = probe(J, m, n, 10, 3);
    EXPECT_EQ(found, places_of(J, m, n, status));
    EXPECT_GT(std::count(status.begin(), status.end(), 1), m * 9 / 10) << per_row;
  }
}

TYPED_TEST(Probe, ARowThatIsTooFullStaysOpen) {
  Random random(51);
  const int64_t m = 20, n = 700;
  const auto J = random_matrix<TypeParam>(random, m, n, 200);
  const auto [status, found] = probe(J, m, n, 10, 4);
  EXPECT_EQ(std::count(status.begin(), status.end(), 0), m);
  EXPECT_TRUE(found.empty());
}

TYPED_TEST(Probe, NumbersThatAreNotFinite) {
  std::vector<TypeParam> J = {1, 0, 0, static_cast<TypeParam>(NAN), 0, 2, static_cast<TypeParam>(INFINITY), 0};
  const auto [status, found] = probe(J, 4, 2, 10, 5);
  EXPECT_EQ(status, (std::vector<int8_t>{1, 2, 1, 2}));
  EXPECT_EQ(found, (Places{{0, 0}, {2, 1}}));
}

// A part of the seeds is that part of all of them.
TYPED_TEST(Probe, SeedsInParts) {
  const auto probes = kernels::Probes::of<TypeParam>(300, 4, 7);
  const int64_t n = 300, count = probes.count();
  std::vector<TypeParam> whole(count * n), parts;
  kernels::probe_seeds(probes, 0, count, whole.data());
  for (int64_t first = 0; first < count; first += 7) {
    const int64_t last = std::min(first + 7, count);
    std::vector<TypeParam> part((last - first) * n);
    kernels::probe_seeds(probes, first, last, part.data());
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_EQ(whole, parts);
  for (int64_t j = 0; j < n; ++j) {  // each column in one bucket of each table
    int64_t set = 0;
    for (int64_t s = 0; s < count; s += probes.weights()) set += whole[s * n + j] != 0;
    EXPECT_EQ(set, kernels::Probes::tables);
  }
}

// A row whose product is off, one that is not finite and one that is off by rounding alone, in any number of threads.
TEST(Probe, RowsThatDoNotMultiplyAsTheyShould) {
  Random random(8);
  OwnedPattern<int32_t> J(50, std::vector<std::vector<int32_t>>(40000, {3, 17, 49}));
  const auto values = random.values<double>(J.nnz()), v = random.values<double>(J.cols);
  std::vector<double> product(J.rows);
  const Csr<double, int32_t> A{J.view(), values.data()};
  for (int64_t i = 0; i < J.rows; ++i)
    for (int64_t p = J.indptr[i]; p < J.indptr[i + 1]; ++p) product[i] += values[p] * v[J.indices[p]];
  const auto rows = [&](const Pool& pool) {
    return kernels::mismatched_rows(pool, A, v.data(), product.data(), 1e-10, 1e-15);
  };
  EXPECT_TRUE(rows(Pool(Threads(3))).empty());
  product[7] *= 1 + 1e-14;
  product[11] += 1e-3, product[39999] = NAN, product[20000] = INFINITY;
  for (const int threads : {1, 2, 5}) EXPECT_EQ(rows(Pool(Threads(threads))), (std::vector<int64_t>{11, 20000, 39999}));
}

}  // namespace
}  // namespace gossamer::test
