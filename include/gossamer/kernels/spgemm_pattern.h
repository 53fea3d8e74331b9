// SPDX-License-Identifier: BSD-3-Clause
// The pattern of a product A B: which columns its rows hold, sorted. Integers only, once per pair of patterns.
//
//   C[i, :] = ∪_{k in A[i, :]} B[k, :]        O(Σ_{(i,k) in A} nnz(B[k, :])), the products of A B
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// Before row i, the rows of A B take work[i] products: what the work is split by. rows + 1.
template <Host E, class I>
void spgemm_work(const E& exec, const PatternView<I>& A, const PatternView<I>& B, int64_t* work) {
  for_each_row_range(exec, A, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t products = 0;
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
        products += B.indptr[A.indices[p] + 1] - B.indptr[A.indices[p]];
      work[i + 1] = products;
    }
  });
  work[0] = 0;
  for (int64_t i = 0; i < A.rows; ++i) work[i + 1] += work[i];
}

// The columns of consecutive rows of A B, from first_row on.
template <class I>
struct ProductRows {
  int64_t first_row, count = 0, room;
  std::unique_ptr<I[]> indices;

  ProductRows(int64_t row, int64_t entries)
      : first_row(row), room(entries), indices(std::make_unique_for_overwrite<I[]>(entries)) {}
};

// The distinct columns of a row, sorted, for rows of few products: those not seen before, each put where its rank says.
// The ranks of all are counted side by side, without a branch.
template <class I>
class ShortRow {
 public:
  static constexpr int64_t most = 64;  // products

  explicit ShortRow(int64_t cols) : seen_(cols, I{-1}) {}

  [[gnu::always_inline]] inline int64_t columns(const PatternView<I>& A, const PatternView<I>& B, int64_t i, I* out) {
    constexpr int64_t side_by_side = 16;
    I found[most];
    int64_t count = 0;
    const I mark = static_cast<I>(i);
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      for (int64_t q = B.indptr[A.indices[p]]; q < B.indptr[A.indices[p] + 1]; ++q) {
        const I j = B.indices[q];
        found[count] = j;
        count += seen_[j] != mark;
        seen_[j] = mark;
      }
    bool sorted = true;  // as in a band
    for (int64_t k = 1; k < count; ++k) sorted &= found[k - 1] < found[k];
    if (sorted) return std::copy_n(found, count, out), count;
    for (int64_t k = count; k % side_by_side; ++k) found[k] = 0;  // their ranks are not looked at
    for (int64_t first = 0; first < count; first += side_by_side) {
      I rank[side_by_side] = {};
      for (int64_t k = 0; k < count; ++k)
        for (int64_t l = 0; l < side_by_side; ++l) rank[l] += found[k] < found[first + l];
      for (int64_t l = 0; l < std::min(side_by_side, count - first); ++l) out[rank[l]] = found[first + l];
    }
    return count;
  }

 private:
  std::vector<I> seen_;  // the last row a column was found in
};

// The same for rows of many products: a bit for each column and, above, a bit for each 64 of them.
template <class I>
class LongRow {
 public:
  explicit LongRow(int64_t cols) : bits_(cols / 64 + 1), words_(cols / 4096 + 1) {}

  int64_t columns(const PatternView<I>& A, const PatternView<I>& B, int64_t i, I* out) {
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      for (int64_t q = B.indptr[A.indices[p]]; q < B.indptr[A.indices[p] + 1]; ++q) {
        const auto j = static_cast<uint64_t>(B.indices[q]);
        bits_[j / 64] |= uint64_t{1} << j % 64;
        words_[j / 4096] |= uint64_t{1} << j / 64 % 64;
      }
    const I* first = out;
    for (size_t t = 0; t < words_.size(); ++t)
      for (uint64_t left = std::exchange(words_[t], 0); left; left &= left - 1) {
        const size_t w = 64 * t + std::countr_zero(left);
        for (uint64_t word = std::exchange(bits_[w], 0); word; word &= word - 1)
          *out++ = static_cast<I>(64 * w + std::countr_zero(word));
      }
    return out - first;
  }

 private:
  std::vector<uint64_t> bits_, words_;
};

// The pattern of A B, symbolic: once per pair of patterns. O(Σ_{(i,k) in A} nnz(B[k, :])), and the rows are sorted.
// indptr: rows + 1, int64 because it may not fit I. The columns come in pieces, because their number is not known
// before. If there are more than I can number, which no caller can use, rows are still counted but no longer kept.
template <Host E, class I>
std::vector<ProductRows<I>> spgemm_pattern(const E& exec, const PatternView<I>& A, const PatternView<I>& B,
                                           const int64_t* work, int64_t* indptr) {
  const PatternView<int64_t> all{A.rows, B.cols, work[A.rows], work, nullptr};
  std::vector<ProductRows<I>> pieces;
  std::mutex adding;
  std::atomic<int64_t> kept = 0;
  for_each_row_range(exec, all, 4, [&](int64_t begin, int64_t end) {
    ShortRow<I> short_row(B.cols);
    LongRow<I> long_row(B.cols);
    const int64_t piece = std::min<int64_t>(work[end] - work[begin], 1 << 18);
    std::vector<ProductRows<I>> of_range;
    of_range.emplace_back(begin, piece);
    simd([&]<int> {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t products = work[i + 1] - work[i], most = std::min(products, B.cols);
        if (of_range.back().count + most > of_range.back().room) {
          kept += of_range.back().count;
          if (kept > std::numeric_limits<I>::max()) of_range.clear();
          of_range.emplace_back(i, std::max(piece, most));
        }
        ProductRows<I>& to = of_range.back();
        I* row = to.indices.get() + to.count;
        indptr[i + 1] =
            products <= ShortRow<I>::most ? short_row.columns(A, B, i, row) : long_row.columns(A, B, i, row);
        to.count += indptr[i + 1];
      }
    });
    const std::lock_guard lock(adding);
    std::move(of_range.begin(), of_range.end(), std::back_inserter(pieces));
  });
  indptr[0] = 0;
  for (int64_t i = 0; i < A.rows; ++i) indptr[i + 1] += indptr[i];
  return pieces;
}

// The pieces side by side. indices: indptr[rows].
template <Host E, class I>
void join(const E& exec, const std::vector<ProductRows<I>>& pieces, const int64_t* indptr, I* indices) {
  exec.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t k) {
    std::copy_n(pieces[k].indices.get(), pieces[k].count, indices + indptr[pieces[k].first_row]);
  });
}

// Under Pool, compiled once: src/cpu/spgemm.cpp.
#define GOSSAMER_SPGEMM_PATTERN(I, ...)                                                                             \
  __VA_ARGS__ template void spgemm_work(const Pool&, const PatternView<I>&, const PatternView<I>&, int64_t*);       \
  __VA_ARGS__ template std::vector<ProductRows<I>> spgemm_pattern(const Pool&, const PatternView<I>&,               \
                                                                  const PatternView<I>&, const int64_t*, int64_t*); \
  __VA_ARGS__ template void join(const Pool&, const std::vector<ProductRows<I>>&, const int64_t*, I*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_SPGEMM_PATTERN, extern)
#endif

}  // namespace gossamer::kernels
