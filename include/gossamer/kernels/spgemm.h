// SPDX-License-Identifier: BSD-3-Clause
// Sparse times sparse, on a given pattern C (the "mask"). Three forms, closed under differentiation: with G on C,
//
//   nn:  C = A B        dA = nt(G, B | A)      dB = tn(A, G | B)
//   nt:  C = A Bᵀ       dA = nn(G, B | A)      dB = tn(G, A | B)
//   tn:  C = Aᵀ B       dA = nt(B, G | A)      dB = nn(A, G | B)
//
// None forms more of the product than C holds. One thread owns one row of C and adds in one order: bitwise the same for
// every thread count. The scratch is one dense row a thread, for 16-bit values of the third form also a float for each
// entry of C.
#pragma once
#include <type_traits>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/half.h>
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

// Before row k, the rows of Aᵀ B on C take about work[k] products: what the third form is split by. Columns of A are
// counted by every 16th entry, which is enough to balance threads. C.rows + 1.
template <class I>
std::vector<int64_t> spgemm_tn_work(const PatternView<I>& A, const PatternView<I>& C) {
  constexpr int64_t stride = 16;
  std::vector<int64_t> work(C.rows + 1);
  for (int64_t p = 0; p < A.nnz; p += stride) ++work[A.indices[p] + 1];
  for (int64_t k = 0; k < C.rows; ++k)
    work[k + 1] = work[k] + (stride * work[k + 1] + 1) * (C.indptr[k + 1] - C.indptr[k]);
  return work;
}

// Rows `begin` … `end` - 1 of Aᵀ B on C, added to `sums`, which has a place for each entry of C.
template <class T, class I>
class TransposedProduct {
 public:
  TransposedProduct(const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, int64_t begin, int64_t end)
      : A_(A), B_(B), C_(C), begin_(static_cast<I>(begin)), end_(static_cast<I>(end)), row_(C.cols) {}

  // What row i of A and B brings.
  void add(int64_t i, Sum<T>* sums) {
    const int64_t first = B_.indptr[i], last = B_.indptr[i + 1], a_end = A_.indptr[i + 1];
    int64_t p = A_.indptr[i], wanted = 0;
    if (p == a_end || first == last || A_.indices[p] >= end_ || A_.indices[a_end - 1] < begin_) return;
    if (A_.indices[p] < begin_) p = place_of(A_.indices, p, a_end, begin_);
    int64_t p_end = p;
    for (; p_end < a_end && A_.indices[p_end] < end_; ++p_end)
      wanted += C_.indptr[A_.indices[p_end] + 1] - C_.indptr[A_.indices[p_end]];
    if (8 * wanted < last - first) {  // C asks for little
      for (; p < p_end; ++p) add_found(A_.value(p), i, A_.indices[p], sums);
      return;
    }
    for (int64_t q = first; q < last; ++q) row_[B_.indices[q]] = B_.value(q);
    for (; p < p_end; ++p) add_spread(A_.value(p), i, A_.indices[p], sums);
    for (int64_t q = first; q < last; ++q) row_[B_.indices[q]] = 0;
  }

 private:
  // C[k, :] += a B[i, :], by looking the columns of C up.
  void add_found(Sum<T> a, int64_t i, int64_t k, Sum<T>* sums) const {
    for (int64_t r = C_.indptr[k]; r < C_.indptr[k + 1]; ++r) {
      const int64_t q = place_of<I>(B_.indices, B_.indptr[i], B_.indptr[i + 1], C_.indices[r]);
      if (q < B_.indptr[i + 1] && B_.indices[q] == C_.indices[r]) sums[r] += a * B_.value(q);
    }
  }

  // The same where row i of B is spread out, 0 elsewhere. An a that is not finite would make NaN of those zeros.
  void add_spread(Sum<T> a, int64_t i, int64_t k, Sum<T>* sums) const {
    if (a - a != 0) return add_found(a, i, k, sums);
    for (int64_t r = C_.indptr[k]; r < C_.indptr[k + 1]; ++r) sums[r] += a * row_[C_.indices[r]];
  }

  const Csr<T, I>&A_, &B_;
  const PatternView<I>& C_;
  I begin_, end_;
  std::vector<Sum<T>> row_;
};

// C = Aᵀ B on C:  C[k, j] = Σ_i A[i, k] B[i, j].      O(nnz(A) + nnz(B) + Σ_{(i,k) in A} nnz(C[k, :])) a thread
// Row i of B is spread out once and met by every row of C that row i of A names. So the rows that a thread owns grow
// together, in the order of i. The other way, row by row of C, reads the long rows of B again for each short row of C:
// on power laws that is twenty times the products.
template <Host E, class T, class I>
void spgemm_tn(const E& exec, const Csr<T, I>& A, const Csr<T, I>& B, const PatternView<I>& C, T* values) {
  const std::vector<int64_t> work = spgemm_tn_work(A, C);
  const PatternView<int64_t> all{C.rows, C.cols, work[C.rows], work.data(), nullptr};
  for_each_row_range(exec, all, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = C.indptr[begin], count = C.indptr[end] - first;
    TransposedProduct<T, I> product(A, B, C, begin, end);
    if constexpr (std::is_same_v<T, Sum<T>>) {
      std::fill_n(values + first, count, T{0});
      for (int64_t i = 0; i < A.rows; ++i) product.add(i, values);
    } else {  // a type too small to add up in
      std::vector<Sum<T>> sums(count);
      for (int64_t i = 0; i < A.rows; ++i) product.add(i, sums.data() - first);
      for (int64_t r = 0; r < count; ++r) values[first + r] = static_cast<T>(sums[r]);
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

// Under Pool, compiled once: src/cpu/spgemm.cpp.
#define GOSSAMER_SPGEMM(T, I, ...)                                                                                 \
  __VA_ARGS__ template void spgemm_nn(const Pool&, const Csr<T, I>&, const Csr<T, I>&, const PatternView<I>&, T*); \
  __VA_ARGS__ template void spgemm_nt(const Pool&, const Csr<T, I>&, const Csr<T, I>&, const PatternView<I>&, T*); \
  __VA_ARGS__ template void spgemm_tn(const Pool&, const Csr<T, I>&, const Csr<T, I>&, const PatternView<I>&, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SPGEMM, extern)
#endif

}  // namespace gossamer::kernels
