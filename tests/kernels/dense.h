// SPDX-License-Identifier: BSD-3-Clause
// What kernels are compared with: the same product as plain loops over dense arrays, in long double, and how far from
// it a correct kernel may be, in any order of summation and with or without fused multiply-add:
//
//   |got - Σ a b|  ≤  (n + 1) u_sum Σ|a b|  +  u_T |Σ a b|  +  smallest_T        n products, u: unit roundoff
//
// Every array is a vector made with its final size: nothing is allocated behind its last element (as after push_back),
// so AddressSanitizer sees the first element read or written past it.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/half.h>

namespace gossamer::test {

// A value type and an index type, for TYPED_TEST_SUITE: every one of each, not every pair, which would take twice as
// long to compile.
template <class T_, class I_>
struct Types {
  using T = T_;
  using I = I_;
};
using AllTypes =
    testing::Types<Types<float, int32_t>, Types<double, int64_t>, Types<bfloat16, int64_t>, Types<float16, int32_t>>;
using IndexTypes = testing::Types<int32_t, int64_t>;

template <class T>
T rounded(double value) {
  return static_cast<T>(static_cast<Sum<T>>(value));
}

// The same numbers with every standard library: its generators are specified, its distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(bits_() % static_cast<uint64_t>(n)); }
  double real() { return std::ldexp(static_cast<double>(bits_() >> 11), -52) - 1; }  // in [-1, 1)

  template <class T>
  std::vector<T> values(int64_t n) {
    std::vector<T> result(n);
    for (T& value : result) value = rounded<T>(real());
    return result;
  }
  template <class I>
  std::vector<I> permutation(int64_t n) {
    std::vector<I> result(n);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t other = below(k + 1);
      result[k] = result[other];
      result[other] = static_cast<I>(k);
    }
    return result;
  }
  // rows × width, rows `ld` apart. Between them NaN, so that a read there shows; nothing after the last.
  template <class T>
  std::vector<T> strided(int64_t rows, int64_t width, int64_t ld) {
    std::vector<T> result(rows > 0 ? (rows - 1) * ld + width : 0, rounded<T>(NAN));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < width; ++c) result[i * ld + c] = rounded<T>(real());
    return result;
  }

 private:
  std::mt19937_64 bits_;
};

template <class I>
struct OwnedPattern {
  int64_t rows = 0, cols = 0;
  std::vector<I> indptr, indices;

  // From the columns of each row.
  OwnedPattern(int64_t columns, const std::vector<std::vector<I>>& of_row)
      : rows(static_cast<int64_t>(of_row.size())), cols(columns), indptr(rows + 1) {
    for (int64_t i = 0; i < rows; ++i) indptr[i + 1] = indptr[i] + static_cast<I>(of_row[i].size());
    indices = std::vector<I>(indptr[rows]);
    for (int64_t i = 0; i < rows; ++i) std::copy(of_row[i].begin(), of_row[i].end(), indices.begin() + indptr[i]);
  }
  int64_t nnz() const { return static_cast<int64_t>(indices.size()); }
  PatternView<I> view() const { return {rows, cols, nnz(), indptr.data(), indices.data()}; }
};

template <class T, class I>
Csr<T, I> with_values(const OwnedPattern<I>& A, const std::vector<T>& values) {
  return {A.view(), values.data(), 1, nullptr};
}

// Each entry with the given probability; every fourth row empty, and the one after it full.
template <class I>
OwnedPattern<I> random_pattern(Random& random, int64_t rows, int64_t cols, double density) {
  std::vector<std::vector<I>> of_row(rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      if (i % 4 != 2 && (i % 4 == 3 || random.real() < 2 * density - 1)) of_row[i].push_back(static_cast<I>(j));
  return {cols, of_row};
}

// Row i has about cols / (i + 1) entries: the first few rows hold most of the matrix.
template <class I>
OwnedPattern<I> power_law_pattern(int64_t rows, int64_t cols) {
  std::vector<std::vector<I>> of_row(rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i % cols; j < cols; j += i + 1) of_row[i].push_back(static_cast<I>(j));
  return {cols, of_row};
}

// One dense sum of products, with what bounds the error of another.
struct Reference {
  long double sum = 0, size = 0;
  int64_t terms = 0;

  void add(long double a, long double b) {
    sum += a * b;
    size += std::abs(a * b);
    terms += a * b != 0;
  }
};

template <class T>
long double tolerance(const Reference& want) {
  constexpr int digits = std::is_same_v<T, bfloat16> ? 8 : std::is_same_v<T, float16> ? 11 : 0;
  const auto u = std::ldexp(1.0L, -std::numeric_limits<Sum<T>>::digits);
  const auto summed = static_cast<long double>(want.terms + 1) * u * want.size;
  if constexpr (digits == 0) return summed;
  return summed + std::ldexp(std::abs(want.sum) + summed, -digits) + std::ldexp(want.terms > 0 ? 1.0L : 0.0L, -25);
}

template <class T>
void expect_close(const std::vector<T>& got, const std::vector<Reference>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    const auto value = static_cast<long double>(static_cast<Sum<T>>(got[k]));
    const bool close = std::abs(value - want[k].sum) <= tolerance<T>(want[k]);  // false for NaN
    ASSERT_TRUE(close) << "element " << k << " is " << value << ", not " << want[k].sum << " ± "
                       << tolerance<T>(want[k]);
  }
}

template <class T>
void expect_same_bits(const std::vector<T>& got, const std::vector<T>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k)
    ASSERT_EQ(std::memcmp(&got[k], &want[k], sizeof(T)), 0)
        << "element " << k << " is " << Sum<T>(got[k]) << ", not " << Sum<T>(want[k]);
}

// (heads, rows, cols), zeros included.
template <class T, class I>
std::vector<long double> to_dense(const Csr<T, I>& A) {
  std::vector<long double> dense(A.heads * A.rows * A.cols);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      for (int64_t h = 0; h < A.heads; ++h) {
        const int64_t entry = A.perm != nullptr ? A.perm[p] : p;
        dense[(h * A.rows + i) * A.cols + A.indices[p]] = static_cast<Sum<T>>(A.values[entry * A.heads + h]);
      }
  return dense;
}

// Y[i, h, c] = Σ_j A[h, i, j] X[j, h, c]
template <class T, class I>
std::vector<Reference> dense_spmm(const Csr<T, I>& A, const std::vector<T>& X, int64_t ldx, int64_t width) {
  const std::vector<long double> dense = to_dense(A);
  std::vector<Reference> Y(A.rows * A.heads * width);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t h = 0; h < A.heads; ++h)
      for (int64_t j = 0; j < A.cols; ++j)
        for (int64_t c = 0; c < width; ++c)
          Y[(i * A.heads + h) * width + c].add(dense[(h * A.rows + i) * A.cols + j],
                                               static_cast<Sum<T>>(X[j * ldx + h * width + c]));
  return Y;
}

// values[p, h] = (U Vᵀ)[h, i, j], p the entry at (i, j)
template <class T, class I>
std::vector<Reference> dense_sddmm(const PatternView<I>& A, int64_t heads, const std::vector<T>& U, int64_t ldu,
                                   const std::vector<T>& V, int64_t ldv, int64_t width) {
  std::vector<Reference> product(A.rows * A.cols * heads), values(A.nnz * heads);
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t j = 0; j < A.cols; ++j)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t c = 0; c < width; ++c)
          product[(i * A.cols + j) * heads + h].add(static_cast<Sum<T>>(U[i * ldu + h * width + c]),
                                                    static_cast<Sum<T>>(V[j * ldv + h * width + c]));
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      for (int64_t h = 0; h < heads; ++h) values[p * heads + h] = product[(i * A.cols + A.indices[p]) * heads + h];
  return values;
}

}  // namespace gossamer::test
