// SPDX-License-Identifier: BSD-3-Clause
// Sparse times sparse in its three forms, on the full pattern and on masks, against dense loops; the pattern of a
// product; unions and intersections; sums that do not depend on the number of threads.
#include "gossamer/spgemm.h"

#include <algorithm>
#include <set>

#include "dense.h"
#include "executors.h"
#include "gossamer/dot.h"
#include "gossamer/merge.h"
#include "gossamer/place.h"
#include "gossamer/transpose.h"

namespace gossamer::test {
namespace {

using I = int32_t;

template <class T>
Csr<T, I> with_values(const OwnedPattern<I>& A, const std::vector<T>& values) {
  return {A.view(), values.data(), 1, nullptr};
}

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

  kernels::spgemm_nn(threads, with_values(A, a), with_values(B, b), C.view(), got.data());
  expect_close(got,
               dense_product(
                   C, l, [&](auto i, auto k) { return dA[i * l + k]; }, [&](auto k, auto j) { return dB[k * n + j]; }));
  kernels::spgemm_nt(threads, with_values(A, a), with_values(Bt, bt), C.view(), got.data());
  expect_close(
      got, dense_product(
               C, l, [&](auto i, auto k) { return dA[i * l + k]; }, [&](auto k, auto j) { return dBt[j * l + k]; }));

  OwnedPattern<I> turned(l, std::vector<std::vector<I>>(m));
  turned.indices.resize(At.nnz());
  std::vector<I> perm(At.nnz());
  kernels::transpose(At.view(), turned.indptr.data(), turned.indices.data(), perm.data());
  Csr<T, I> transposed = with_values(turned, at);
  transposed.perm = perm.data();
  kernels::spgemm_tn(threads, transposed, with_values(B, b), C.view(), got.data());
  const std::vector<T> first = got;
  expect_close(
      got, dense_product(
               C, l, [&](auto i, auto k) { return dAt[k * m + i]; }, [&](auto k, auto j) { return dB[k * n + j]; }));
  kernels::spgemm_tn(Serial{}, transposed, with_values(B, b), C.view(), got.data());
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
  expect_products<float>(300, 40, 300, 0.3);  // long rows of B against short rows of C, and the work is split
}

TEST(Spgemm, PatternIsEveryPlaceAProductReaches) {
  Random random(3);
  const auto A = random_pattern<I>(random, 60, 50, 0.2), B = random_pattern<I>(random, 50, 70, 0.2);
  std::vector<int64_t> work(A.rows + 1), indptr(A.rows + 1);
  for (const int64_t count : {1, 4}) {
    const Threads threads(count);
    kernels::spgemm_work(A.view(), B.view(), work.data());
    kernels::spgemm_count(threads, A.view(), B.view(), work.data(), indptr.data());
    std::vector<I> indices(indptr[A.rows]);
    kernels::spgemm_fill(threads, A.view(), B.view(), work.data(), indptr.data(), indices.data());
    for (int64_t i = 0; i < A.rows; ++i) {
      std::set<I> want;
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
        for (int64_t q = B.indptr[A.indices[p]]; q < B.indptr[A.indices[p] + 1]; ++q) want.insert(B.indices[q]);
      EXPECT_EQ(std::vector<I>(want.begin(), want.end()),
                std::vector<I>(indices.begin() + indptr[i], indices.begin() + indptr[i + 1]));
    }
  }
}

TEST(Merge, UnionAndIntersectionWithTheirMaps) {
  Random random(5);
  const auto A = random_pattern<I>(random, 30, 20, 0.3), B = random_pattern<I>(random, 30, 20, 0.3);
  const auto a = random.values<double>(A.nnz()), b = random.values<double>(B.nnz());
  const auto dA = to_dense(with_values(A, a)), dB = to_dense(with_values(B, b));
  for (const bool intersect : {false, true}) {
    OwnedPattern<I> C(20, std::vector<std::vector<I>>(30));
    kernels::merge_count(Threads(2), A.view(), B.view(), intersect, C.indptr.data());
    const int64_t nnz = C.indptr[30];
    C.indices.resize(nnz);
    std::vector<I> from_A(nnz), from_B(nnz), to_A(A.nnz()), to_B(B.nnz());
    kernels::merge_fill(Threads(2), A.view(), B.view(), intersect, C.indptr.data(), C.indices.data(), from_A.data(),
                        to_A.data(), from_B.data(), to_B.data());
    EXPECT_EQ(check_structure(C.view()), "");
    std::vector<double> sum(nnz);
    kernels::place_sum(Serial{}, nnz, 1, from_A.data(), a.data(), from_B.data(), b.data(), sum.data());
    for (int64_t i = 0; i < 30; ++i)
      for (int64_t p = C.indptr[i]; p < C.indptr[i + 1]; ++p)
        EXPECT_EQ(sum[p], static_cast<double>(dA[i * 20 + C.indices[p]] + dB[i * 20 + C.indices[p]]));
    for (int64_t q = 0; q < A.nnz(); ++q) EXPECT_TRUE(to_A[q] < 0 ? intersect : from_A[to_A[q]] == q);
    for (int64_t q = 0; q < B.nnz(); ++q) EXPECT_TRUE(to_B[q] < 0 ? intersect : from_B[to_B[q]] == q);
    std::vector<double> back(A.nnz());
    kernels::place(Threads(2), A.nnz(), to_A.data(), 1, sum.data(), back.data());
    for (int64_t q = 0; q < A.nnz(); ++q) EXPECT_EQ(back[q], to_A[q] < 0 ? 0 : sum[to_A[q]]);
  }
}

TEST(Dot, SameBitsForEveryNumberOfThreads) {
  Random random(9);
  for (const int64_t n : {0, 1, 7, 4096, 4097, 200001}) {
    const auto u = random.values<float>(n), v = random.values<float>(n);
    Reference want;
    for (int64_t k = 0; k < n; ++k) want.add(u[k], v[k]);
    const std::vector<float> serial{kernels::dot(Serial{}, n, u.data(), v.data())};
    expect_close(serial, {want});
    for (const int64_t count : {2, 5}) expect_same_bits({kernels::dot(Threads(count), n, u.data(), v.data())}, serial);
  }
}

}  // namespace
}  // namespace gossamer::test
