// SPDX-License-Identifier: BSD-3-Clause
// Sparse times sparse, on a given pattern C (the "mask"). Three forms, closed under differentiation: with G on C,
//
//   nn:  C = A B        dA = nt(G, B | A)      dB = tn(A, G | B)
//   nt:  C = A Bᵀ       dA = nn(G, B | A)      dB = tn(G, A | B)
//   tn:  C = Aᵀ B       dA = nt(B, G | A)      dB = nn(A, G | B)
//
// None forms more of the product than C holds. One thread owns one row of C and adds in one order: bitwise the same for
// every thread count. The scratch is one dense row a thread.
#pragma once
#include <atomic>
#include <bit>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/half.h>
#include <gossamer/kernels/simd.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// The first form as loops. Tests compare the tuned kernels with it.
namespace plain {
template <class T, class I>
void spgemm(const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, T* values) {
  for (int64_t i = 0; i < C.rows; ++i) {
    std::vector<Sum<T>> row(C.cols);
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      for (int64_t q = B.indptr[A.indices[p]]; q < B.indptr[A.indices[p] + 1]; ++q)
        row[B.indices[q]] += A.value(p) * B.value(q);
    for (int64_t r = C.indptr[i]; r < C.indptr[i + 1]; ++r) values[r] = static_cast<T>(row[C.indices[r]]);
  }
}
}  // namespace plain

// row += a B[k, :], spread out.
template <class T, class I>
void add_row(Sum<T> a, const Csr<T, I>& B, int64_t k, Sum<T>* row) {
  for (int64_t q = B.indptr[k]; q < B.indptr[k + 1]; ++q) row[B.indices[q]] += a * B.value(q);
}

// C = A B on C:  C[i, j] = Σ_k A[i, k] B[k, j].      O(Σ_{(i,k) in A} nnz(B[k, :]) + nnz(C))
// Gustavson: row i of the product grows in a dense row. Only C's columns of it are cleared before and read after; what
// is added elsewhere is never looked at.
template <Host E, class T, class I>
void spgemm_nn(const E& exec, const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, T* values) {
  for_each_row_range(exec, C, 4, [&](int64_t begin, int64_t end) {
    std::vector<Sum<T>> row(C.cols);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = C.indptr[i], last = C.indptr[i + 1];
      if (first == last) continue;
      for (int64_t r = first; r < last; ++r) row[C.indices[r]] = 0;
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) add_row(A.value(p), B, A.indices[p], row.data());
      for (int64_t r = first; r < last; ++r) values[r] = static_cast<T>(row[C.indices[r]]);
    }
  });
}

// C = A Bᵀ on C:  C[i, k] = A[i, :] · B[k, :].      O(nnz(A) + Σ_{(i,k) in C} nnz(B[k, :]))
// Row i of A is spread out once and met by every row of B that C asks for.
template <Host E, class T, class I>
void spgemm_nt(const E& exec, const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, T* values) {
  for_each_row_range(exec, C, 4, [&](int64_t begin, int64_t end) {
    std::vector<Sum<T>> row(A.cols);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) row[A.indices[p]] = A.value(p);
      for (int64_t r = C.indptr[i]; r < C.indptr[i + 1]; ++r) {
        Sum<T> sum = 0;
        for (int64_t q = B.indptr[C.indices[r]]; q < B.indptr[C.indices[r] + 1]; ++q)
          sum += B.value(q) * row[B.indices[q]];
        values[r] = static_cast<T>(sum);
      }
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) row[A.indices[p]] = 0;
    }
  });
}

// C = Aᵀ B on C:  C[k, j] = Σ_i A[i, k] B[i, j]; At is Aᵀ (A's transposed pattern, read through perm).
// For each i that column k of A names, row i of B meets row k of C: whichever way is shorter, all of B's row added to
// the spread-out row of C, or each column of C looked up in B's row. Both add in the order of i.
template <Host E, class T, class I>
void spgemm_tn(const E& exec, const Csr<T, I>& At, const Csr<T, I>& B, const PatternView<I>& C, T* values) {
  for_each_row_range(exec, C, 4, [&](int64_t begin, int64_t end) {
    std::vector<Sum<T>> row(C.cols);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = C.indptr[k], last = C.indptr[k + 1];
      if (first == last) continue;
      for (int64_t r = first; r < last; ++r) row[C.indices[r]] = 0;
      for (int64_t p = At.indptr[k]; p < At.indptr[k + 1]; ++p) {
        const int64_t i = At.indices[p], b = B.indptr[i], b_end = B.indptr[i + 1];
        const Sum<T> a = At.value(p);
        if (b_end - b <= 8 * (last - first)) {
          add_row(a, B, i, row.data());
          continue;
        }
        for (int64_t r = first; r < last; ++r) {
          const I* found = std::lower_bound(B.indices + b, B.indices + b_end, C.indices[r]);
          if (found < B.indices + b_end && *found == C.indices[r]) row[*found] += a * B.value(found - B.indices);
        }
      }
      for (int64_t r = first; r < last; ++r) values[r] = static_cast<T>(row[C.indices[r]]);
    }
  });
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/spgemm.cu. The third form is the first with Aᵀ for
// A. scratch: nnz(C).
template <class T, class I>
[[gnu::weak]] void spgemm_nn(Cuda, const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, T* values,
                             Sum<T>* scratch);
template <class T, class I>
[[gnu::weak]] void spgemm_nt(Cuda, const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, T* values);

// Before row i, the rows of A B take work[i] products: what the work is split by. rows + 1.
template <class I>
void spgemm_work(const PatternView<I>& A, const PatternView<I>& B, int64_t* work) {
  work[0] = 0;
  for (int64_t i = 0; i < A.rows; ++i) {
    work[i + 1] = work[i];
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      work[i + 1] += B.indptr[A.indices[p] + 1] - B.indptr[A.indices[p]];
  }
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
#define GOSSAMER_SPGEMM(T, I, ...)                                                                                 \
  __VA_ARGS__ template void spgemm_nn(const Pool&, const Csr<T, I>&, const Csr<T, I>&, const PatternView<I>&, T*); \
  __VA_ARGS__ template void spgemm_nt(const Pool&, const Csr<T, I>&, const Csr<T, I>&, const PatternView<I>&, T*); \
  __VA_ARGS__ template void spgemm_tn(const Pool&, const Csr<T, I>&, const Csr<T, I>&, const PatternView<I>&, T*);
#define GOSSAMER_SPGEMM_PATTERN(I, ...)                                                                             \
  __VA_ARGS__ template std::vector<ProductRows<I>> spgemm_pattern(const Pool&, const PatternView<I>&,               \
                                                                  const PatternView<I>&, const int64_t*, int64_t*); \
  __VA_ARGS__ template void join(const Pool&, const std::vector<ProductRows<I>>&, const int64_t*, I*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SPGEMM, extern)
GOSSAMER_FOR_EACH_INDEX(GOSSAMER_SPGEMM_PATTERN, extern)
#endif

}  // namespace gossamer::kernels
