// SPDX-License-Identifier: BSD-3-Clause
// Sparse times sparse in its three forms, on the full pattern and on masks, against dense loops; the pattern of a
// product; unions and intersections; sums that do not depend on the number of threads.
#include <gossamer/kernels/spgemm.h>

#include <algorithm>
#include <numeric>
#include <set>

#include <gossamer/kernels/dot.h>
#include <gossamer/kernels/merge.h>
#include <gossamer/kernels/place.h>
#include <gossamer/kernels/spgemm_pattern.h>
#include "dense.h"
#include "executors.h"

namespace gossamer::test {
namespace {

using I = int32_t;

// C[i, j] = Σ_k X[i, k] Y[k, j] at the entries of C, X: m × l, Y: l × n given by element.
template <class F, class G>
std::vector<Reference> dense_product(const OwnedPattern<I>& C, int64_t l, const F& X, const G& Y) {
  std::vector<Reference> values(C.nnz());
  for (int64_t i = 0; i < C.rows; ++i)
    for (int64_t r = C.indptr[i]; r < C.indptr[i + 1]; ++r)
      for (int64_t k = 0; k < l; ++k) values[r].add(X(i, k), Y(k, C.indices[r]));
  return values;
}

template <class T>
void expect_products(int64_t m, int64_t l, int64_t n, double density) {
  Random random(7);
  const auto A = random_pattern<I>(random, m, l, density), B = random_pattern<I>(random, l, n, density),
             Bt = random_pattern<I>(random, n, l, density), At = random_pattern<I>(random, l, m, density),
             C = random_pattern<I>(random, m, n, density);
  const auto a = random.values<T>(A.nnz()), b = random.values<T>(B.nnz()), bt = random.values<T>(Bt.nnz()),
             at = random.values<T>(At.nnz());
  const auto dense = [](const OwnedPattern<I>& P, const std::vector<T>& v) { return to_dense(with_values(P, v)); };
  const auto dA = dense(A, a), dB = dense(B, b), dBt = dense(Bt, bt), dAt = dense(At, at);
  std::vector<T> got(C.nnz());
  const Threads threads(3);
  const Pool pool = threads;

  kernels::spgemm_nn(pool, with_values(A, a), with_values(B, b), C.view(), got.data());
  expect_close(got,
               dense_product(
                   C, l, [&](auto i, auto k) { return dA[i * l + k]; }, [&](auto k, auto j) { return dB[k * n + j]; }));
  std::vector<T> plain(C.nnz());
  kernels::plain::spgemm(with_values(A, a), with_values(B, b), C.view(), plain.data());
  expect_same_bits(plain, got);
  kernels::spgemm_nt(pool, with_values(A, a), with_values(Bt, bt), C.view(), got.data());
  expect_close(
      got, dense_product(
               C, l, [&](auto i, auto k) { return dA[i * l + k]; }, [&](auto k, auto j) { return dBt[j * l + k]; }));

  kernels::spgemm_tn(pool, with_values(At, at), with_values(B, b), C.view(), got.data());
  const std::vector<T> first = got;
  expect_close(
      got, dense_product(
               C, l, [&](auto i, auto k) { return dAt[k * m + i]; }, [&](auto k, auto j) { return dB[k * n + j]; }));
  kernels::spgemm_tn(Pool(Serial{}), with_values(At, at), with_values(B, b), C.view(), got.data());
  expect_same_bits(got, first);
}

TEST(Spgemm, EqualsDenseOnAnyMask) {
  for (const double density : {0.0, 0.1, 0.6}) {
    expect_products<double>(9, 7, 11, density);
    expect_products<float>(40, 33, 50, density);
    expect_products<bfloat16>(8, 5, 6, density);
    expect_products<double>(0, 3, 4, density);
    expect_products<double>(4, 0, 3, density);
    expect_products<double>(3, 4, 0, density);
  }
  expect_products<float>(300, 40, 300, 0.3);  // the work is split
  expect_products<bfloat16>(300, 40, 300, 0.3);
}

// Where the pattern of C asks for a column that row i of B lacks, nothing is added: not even infinity times nothing.
TEST(Spgemm, AnInfiniteEntryMeetsStoredOnesAlone) {
  const OwnedPattern<I> At(2, {{0, 1}}), B(40, {{0, 3}}), few(40, {{0, 1}, {3}}), many(40, {{0, 1, 2, 3}, {0, 3, 39}});
  const std::vector<double> a = {INFINITY, 2}, b = {5, 7};
  std::vector<double> got(few.nnz());
  kernels::spgemm_tn(Pool(Serial{}), with_values(At, a), with_values(B, b), few.view(), got.data());
  EXPECT_EQ(got, (std::vector<double>{INFINITY, 0, 14}));
  got.resize(many.nnz());
  kernels::spgemm_tn(Pool(Serial{}), with_values(At, a), with_values(B, b), many.view(), got.data());
  EXPECT_EQ(got, (std::vector<double>{INFINITY, 0, 0, INFINITY, 10, 14, 0}));
}

// Long rows of B of which C asks for a few entries are searched, the same sums in the same order.
TEST(Spgemm, FewWantedEntriesOfLongRowsAreLookedUp) {
  Random random(8);
  const auto At = random_pattern<I>(random, 60, 20, 0.1), B = random_pattern<I>(random, 60, 900, 0.5);
  const auto some = random_pattern<I>(random, 20, 900, 0.002);
  std::vector<I> columns(900);
  std::iota(columns.begin(), columns.end(), 0);
  const OwnedPattern<I> all(900, std::vector<std::vector<I>>(20, columns));
  const auto a = random.values<double>(At.nnz()), b = random.values<double>(B.nnz());
  std::vector<double> few(some.nnz()), every(all.nnz());
  kernels::spgemm_tn(Pool(Threads(2)), with_values(At, a), with_values(B, b), some.view(), few.data());
  kernels::spgemm_tn(Pool(Threads(2)), with_values(At, a), with_values(B, b), all.view(), every.data());
  for (int64_t k = 0; k < some.rows; ++k)
    for (int64_t r = some.indptr[k]; r < some.indptr[k + 1]; ++r) EXPECT_EQ(few[r], every[k * 900 + some.indices[r]]);
}

void expect_product_pattern(const OwnedPattern<I>& A, const OwnedPattern<I>& B) {
  std::vector<int64_t> work(A.rows + 1), indptr(A.rows + 1);
  kernels::spgemm_work(Threads(3), A.view(), B.view(), work.data());
  for (const int64_t count : {1, 4}) {
    const Threads threads(count);
    const Pool pool = threads;
    const auto pieces = kernels::spgemm_pattern(pool, A.view(), B.view(), work.data(), indptr.data());
    std::vector<I> indices(indptr[A.rows]);
    kernels::join(pool, pieces, indptr.data(), indices.data());
    for (int64_t i = 0; i < A.rows; ++i) {
      std::set<I> want;
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
        for (int64_t q = B.indptr[A.indices[p]]; q < B.indptr[A.indices[p] + 1]; ++q) want.insert(B.indices[q]);
      EXPECT_EQ(std::vector<I>(want.begin(), want.end()),
                std::vector<I>(indices.begin() + indptr[i], indices.begin() + indptr[i + 1]));
    }
  }
}

// A column times a row, with indices of 16 bits, as a stand-in for 2^31 entries: counted, but not kept.
TEST(Spgemm, AProductOfMoreEntriesThanIndicesIsOnlyCounted) {
  constexpr int16_t n = 2000;
  std::vector<int16_t> ptr(n + 1), zeros(n), all(n);
  for (int16_t k = 0; k < n; ++k) ptr[k + 1] = static_cast<int16_t>(k + 1), all[k] = k;
  const std::vector<int16_t> row = {0, n};
  const PatternView<int16_t> column{n, 1, n, ptr.data(), zeros.data()}, line{1, n, n, row.data(), all.data()};
  std::vector<int64_t> work(n + 1), indptr(n + 1);
  kernels::spgemm_work(Serial{}, column, line, work.data());
  const auto pieces = kernels::spgemm_pattern(Threads(2), column, line, work.data(), indptr.data());
  EXPECT_EQ(indptr[n], int64_t{n} * n);
  int64_t kept = 0;
  for (const auto& piece : pieces) kept += piece.room;
  EXPECT_LT(kept, int64_t{n} * n / 4);
}

TEST(Spgemm, PatternIsEveryPlaceAProductReaches) {
  Random random(3);
  expect_product_pattern(random_pattern<I>(random, 300, 50, 0.2), random_pattern<I>(random, 50, 70, 0.2));
  expect_product_pattern(OwnedPattern<I>(0, {{}, {}}), OwnedPattern<I>(4, {}));
  // Columns far apart are sorted; those close together are read off their marks.
  expect_product_pattern(OwnedPattern<I>(3, {{0, 1, 2}, {0, 2}, {}, {1, 2}}),
                         OwnedPattern<I>(10000, {{5000, 9999}, {3, 7000}, {4, 5000}}));
}

TEST(Merge, UnionAndIntersectionWithTheirMaps) {
  Random random(5);
  const auto A = random_pattern<I>(random, 30, 20, 0.3), B = random_pattern<I>(random, 30, 20, 0.3);
  const auto a = random.values<double>(A.nnz()), b = random.values<double>(B.nnz());
  const auto dA = to_dense(with_values(A, a)), dB = to_dense(with_values(B, b));
  for (const bool intersect : {false, true}) {
    OwnedPattern<I> C(20, std::vector<std::vector<I>>(30));
    kernels::merge_count(Pool(Threads(2)), A.view(), B.view(), intersect, C.indptr.data());
    const int64_t nnz = C.indptr[30];
    C.indices.resize(nnz);
    std::vector<I> at_A(intersect ? nnz : A.nnz()), at_B(intersect ? nnz : B.nnz());
    const auto fill = intersect ? kernels::intersection_fill<Pool, I> : kernels::union_fill<Pool, I>;
    fill(Pool(Threads(2)), A.view(), B.view(), C.indptr.data(), C.indices.data(), at_A.data(), at_B.data());
    EXPECT_EQ(check_structure(C.view()), "");
    std::vector<double> c(nnz);
    if (intersect) {
      std::vector<double> x(nnz), y(nnz);
      kernels::pick(Pool(Threads(2)), nnz, at_A.data(), 1, a.data(), x.data());
      kernels::pick(Pool(Serial{}), nnz, at_B.data(), 1, b.data(), y.data());
      for (int64_t p = 0; p < nnz; ++p) c[p] = x[p] * y[p];
    } else {
      const kernels::Part<double, I> one{A.nnz(), at_A.data(), a.data()}, two{B.nnz(), at_B.data(), b.data()};
      kernels::place(Pool(Threads(2)), nnz, 1, {one, two}, c.data());
    }
    const auto dC = to_dense(with_values(C, c));
    const auto in = [](const auto& X) { return to_dense(with_values(X, std::vector<double>(X.nnz(), 1.0))); };
    const auto in_A = in(A), in_B = in(B), in_C = in(C);
    for (size_t k = 0; k < dC.size(); ++k) {
      EXPECT_EQ(in_C[k], intersect ? in_A[k] * in_B[k] : std::max(in_A[k], in_B[k]));
      EXPECT_EQ(static_cast<double>(dC[k]), static_cast<double>(intersect ? dA[k] * dB[k] : dA[k] + dB[k]));
    }
  }
}

// Rows of all lengths, some longer than the eight columns that are compared at once, and the last ones of the arrays.
template <class T, class J>
void expect_first_sum(int64_t m, int64_t n, double density_A, double density_B, int64_t threads = 1) {
  Random random(11);
  const auto A = random_pattern<J>(random, m, n, density_A), B = random_pattern<J>(random, m, n, density_B);
  const auto a = random.values<T>(A.nnz()), b = random.values<T>(B.nnz());
  std::vector<J> indptr(m + 1), common(m + 1);
  kernels::merge_count(Pool(Threads(3)), A.view(), B.view(), /*intersect=*/false, indptr.data());
  kernels::merge_count(Pool(Serial{}), A.view(), B.view(), /*intersect=*/true, common.data());
  for (int64_t i = 0; i < m; ++i) {
    std::set<J> all(A.indices.begin() + A.indptr[i], A.indices.begin() + A.indptr[i + 1]);
    const auto of_A = static_cast<int64_t>(all.size());
    all.insert(B.indices.begin() + B.indptr[i], B.indices.begin() + B.indptr[i + 1]);
    const auto count = static_cast<int64_t>(all.size());
    ASSERT_EQ(indptr[i + 1] - indptr[i], count);
    ASSERT_EQ(common[i + 1] - common[i], of_A + B.indptr[i + 1] - B.indptr[i] - count);
  }
  const int64_t nnz = indptr[m];
  std::vector<J> starts(m + 1), indices(A.nnz() + B.nnz()), again(nnz), at_A(A.nnz()), at_B(B.nnz());
  std::vector<T> sum(A.nnz() + B.nnz()), placed(nnz);
  const Csr<T, J> left{A.view(), a.data(), 1, nullptr}, right{B.view(), b.data(), 1, nullptr};
  const int64_t found =
      kernels::union_sum(Pool(Threads(threads)), left, right, starts.data(), indices.data(), sum.data());
  ASSERT_EQ(found, nnz);
  EXPECT_EQ(starts, indptr);
  indices.resize(nnz), sum.resize(nnz);
  kernels::union_fill(Pool(Serial{}), A.view(), B.view(), indptr.data(), again.data(), at_A.data(), at_B.data());
  const kernels::Part<T, J> one{A.nnz(), at_A.data(), a.data()}, two{B.nnz(), at_B.data(), b.data()};
  kernels::place(Pool(Serial{}), nnz, 1, {one, two}, placed.data());
  EXPECT_EQ(indices, again);
  expect_same_bits(sum, placed);
}

TEST(Merge, AFirstSumIsTheSumOfPlacedParts) {
  expect_first_sum<double, int32_t>(500, 60, 0.2, 0.2);
  expect_first_sum<double, int32_t>(3000, 60, 0.2, 0.2, 3);  // the work is split
  expect_first_sum<float, int64_t>(3000, 90, 0.05, 0.6, 2);
  expect_first_sum<bfloat16, int32_t>(200, 40, 0.9, 0.1);
  expect_first_sum<float16, int64_t>(9, 7, 0.5, 0.5);
  expect_first_sum<double, int32_t>(5, 6, 0.0, 0.3);
}

// More entries than a stretch, heads, and the split between threads.
TEST(Place, IsTheAdjointOfPick) {
  Random random(6);
  constexpr int64_t n = 50001, heads = 3;
  std::vector<I> at;
  for (I p = 0; p < n; ++p)
    if (random.below(3) == 0) at.push_back(p);
  const auto count = static_cast<int64_t>(at.size());
  const auto part = random.values<float>(count * heads);
  std::vector<float> whole(n * heads, NAN), parallel(n * heads, NAN), back(count * heads, NAN);
  const kernels::Part<float, I> one{count, at.data(), part.data()};
  kernels::place(Pool(Serial{}), n, heads, {one}, whole.data());
  kernels::place(Pool(Threads(3)), n, heads, {one}, parallel.data());
  expect_same_bits(parallel, whole);
  kernels::pick(Pool(Threads(3)), count, at.data(), heads, whole.data(), back.data());
  expect_same_bits(back, part);
  EXPECT_EQ(std::count_if(whole.begin(), whole.end(), [](float x) { return x != 0; }),
            std::count_if(part.begin(), part.end(), [](float x) { return x != 0; }));
}

TEST(Dot, SameBitsForEveryNumberOfThreads) {
  Random random(9);
  for (const int64_t n : {0, 1, 7, 4096, 4097, 200001}) {
    const auto u = random.values<float>(n), v = random.values<float>(n);
    Reference want;
    for (int64_t k = 0; k < n; ++k) want.add(u[k], v[k]);
    const std::vector<float> serial{kernels::dot(Pool(Serial{}), n, u.data(), v.data())};
    expect_close(serial, {want});
    for (const int64_t count : {2, 5})
      expect_same_bits({kernels::dot(Pool(Threads(count)), n, u.data(), v.data())}, serial);
  }
}

}  // namespace
}  // namespace gossamer::test
