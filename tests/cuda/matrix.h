// SPDX-License-Identifier: BSD-3-Clause
// Matrices and shapes for the kernel tests. All numbers are small integers: their sums are exact in any order, so a
// kernel must agree with the reference to the last bit, whatever its tree of additions. All arrays are heap
// allocations of exactly the size the contract asks for, so that AddressSanitizer sees the first byte too far.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <ostream>
#include <random>
#include <vector>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/half.h>
#include "emulator/emulator.h"
#include "emulator/sanitizer.h"

namespace gossamer::test {

// Whether the program is one of ThreadSanitizer's, where a CUDA thread takes a millisecond: few cases, small ones.
// Asked when it runs, for the tests are compiled once.
inline const bool under_tsan = emulator::sanitizer::has_fibers();

using Lengths = std::vector<int64_t>;  // entries of each row

struct Case {
  int64_t width, heads;
  Lengths lengths;
  int64_t cols;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.lengths.size() << " x " << c.cols << ", width " << c.width << ", heads " << c.heads;
  }
};

// The last row holds half of all entries; the others stand around the edges of what is cut into pieces (pieces.h): as
// long as a row may be, one more, pieces without a remainder, pieces that begin in the middle of a place and at its
// edge.
inline Lengths half_in_one_row() {
  const Lengths others{212, 1024, 1536, 0, 1025, 7};
  Lengths all = others;
  all.push_back(std::accumulate(others.begin(), others.end(), int64_t{0}));
  return all;
}

// Widths around every edge of the kernels' layouts × heads, on rows around the edges of a warp.
inline std::vector<Case> cases() {
  const Lengths with_a_long_row{3, 0, 1030, 0, 1};
  if (under_tsan) {
    const Lengths lengths{0, 33, 2};
    return {{1, 1, lengths, 40}, {3, 1, lengths, 40},  {33, 1, lengths, 40},
            {7, 3, lengths, 40}, {50, 2, lengths, 40}, {1, 1, with_a_long_row, 1100}};
  }
  const Lengths around_a_warp{0, 1, 31, 32, 33, 0, 0, 5, 65, 2}, short_rows(70, 1);
  std::vector<Case> all;
  for (int64_t width : {1, 2, 3, 8, 16, 31, 32, 33, 64, 100, 130})
    for (int64_t heads : {1, 3, 8}) {
      all.push_back({width, heads, around_a_warp, 70});
      if (heads == 1 || width < 4) all.push_back({width, heads, with_a_long_row, 1100});
      if (heads * width < 10) all.push_back({width, heads, short_rows, 7});
    }
  for (int64_t width : {1, 3, 37, 70}) all.push_back({width, width == 3 ? 2 : 1, half_in_one_row(), 4000});
  for (int64_t width : {0, 1, 5, 40}) {
    all.push_back({width, 2, {}, 5});         // no rows
    all.push_back({width, 2, {0, 0, 0}, 0});  // no columns
    all.push_back({width, 2, {1}, 1});
    all.push_back({width, 1, Lengths(200, 0), 3});
    all.push_back({width, 0, {2, 1}, 3});
  }
  return all;
}

// Sets the schedule for the launches to come.
inline void schedule(uint64_t seed) {
  emulator::config = {seed, static_cast<unsigned>(1 + seed % 5)};
}

template <class T>
std::vector<T> small_integers(int64_t n, std::mt19937& random) {
  std::vector<T> v(n);
  for (T& x : v) x = static_cast<T>(static_cast<float>(static_cast<int>(random() % 7) - 3));
  return v;
}

// Dense rows `stride` apart, `width` wide, the last one without padding; NaN between the rows: nobody may read that.
template <class T>
std::vector<T> dense_rows(int64_t rows, int64_t width, int64_t stride, std::mt19937& random) {
  std::vector<T> v = small_integers<T>(rows ? (rows - 1) * stride + width : 0, random);
  for (size_t k = 0; k < v.size(); ++k)
    if (static_cast<int64_t>(k) % stride >= width) v[k] = static_cast<T>(NAN);
  return v;
}

template <class T>
std::vector<T> not_numbers(int64_t n) {
  return std::vector<T>(n, static_cast<T>(NAN));
}

template <class T>
testing::AssertionResult same_bits(const std::vector<T>& got, const std::vector<T>& wanted) {
  if (got.size() != wanted.size())
    return testing::AssertionFailure() << got.size() << " numbers, not " << wanted.size();
  for (size_t k = 0; k < got.size(); ++k)
    if (std::memcmp(&got[k], &wanted[k], sizeof(T)) != 0)
      return testing::AssertionFailure() << "[" << k << "] is " << static_cast<double>(got[k]) << ", not "
                                         << static_cast<double>(wanted[k]) << "; seed " << emulator::config.seed;
  return testing::AssertionSuccess();
}

// Owns what a Csr points at. Columns are drawn at random, `permuted` values are stored in a random order.
template <class T, class I>
class Matrix {
 public:
  Matrix(const Lengths& lengths, int64_t cols, int64_t heads, bool permuted, std::mt19937& random)
      : cols_(cols), heads_(heads), indptr_(lengths.size() + 1) {
    std::inclusive_scan(lengths.begin(), lengths.end(), indptr_.begin() + 1);
    indices_.reserve(indptr_.back());
    for (int64_t missing : lengths)
      for (int64_t j = 0; j < cols; ++j)
        if (static_cast<int64_t>(random() % (cols - j)) < missing) indices_.push_back(static_cast<I>(j)), --missing;
    values_ = small_integers<T>(nnz() * heads, random);
    if (!permuted) return;
    perm_.resize(nnz());
    std::iota(perm_.begin(), perm_.end(), I{0});
    std::shuffle(perm_.begin(), perm_.end(), random);
  }
  int64_t rows() const { return static_cast<int64_t>(indptr_.size()) - 1; }
  int64_t nnz() const { return indptr_.back(); }
  PatternView<I> pattern() const { return {rows(), cols_, nnz(), indptr_.data(), indices_.data()}; }
  Csr<T, I> csr() const { return {pattern(), values_.data(), heads_, perm_.empty() ? nullptr : perm_.data()}; }

 private:
  int64_t cols_, heads_;
  std::vector<I> indptr_, indices_, perm_;
  std::vector<T> values_;
};

// The types under test: value × index.
template <class T, class I>
struct Types {
  using Value = T;
  using Index = I;
};
// Under ThreadSanitizer those with the numbers 2 and 4 alone: see CMakeLists.txt.
using AllTypes =
    testing::Types<Types<float, int32_t>, Types<double, int32_t>, Types<bfloat16, int32_t>, Types<float16, int32_t>,
                   Types<float, int64_t>, Types<double, int64_t>, Types<bfloat16, int64_t>, Types<float16, int64_t>>;

}  // namespace gossamer::test
