// SPDX-License-Identifier: BSD-3-Clause
// The first product of two patterns that have not met: the pattern of C = A B and the values on it, in one pass.
//
//   C[i, :] = Σ_{k in A[i, :]} A[i, k] B[k, :]        O(Σ_{(i,k) in A} nnz(B[k, :])), the products of A B
//
// Rows are sorted, and a computed zero stays. Each value is summed in the order of k, from 0, as spgemm_nn does it: the
// same bits. How many entries there are is not known before, so each thread writes into room for its products. A row is
// found in one of three ways, whichever is the cheapest for it:
//   repeated   it is the row before it moved by one column, as in a grid or a band: its products go to the same entries
//   scattered  few products, far apart: the distinct columns in a list, each put where its rank says
//   marked     a dense row, a mark for each column and for each 64 of them; the marks are read off in order
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// Whether the columns of every row ascend: as often as a column does not exceed the one before it, a row begins there.
template <Host E, class I>
bool rows_ascend(const E& exec, const PatternView<I>& A) {
  std::atomic<bool> all = true;
  for_each_row_range(exec, A, 1, [&](int64_t begin, int64_t end) {
    I descents = 0, at_starts = 0;  // in the width of the index: more of them at once
    const int64_t first = A.indptr[begin], last = A.indptr[end];
    for (int64_t p = first + 1; p < last; ++p) descents += A.indices[p] <= A.indices[p - 1];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = A.indptr[i];
      if (p > first && p < A.indptr[i + 1]) at_starts += A.indices[p] <= A.indices[p - 1];
    }
    if (descents != at_starts) all = false;
  });
  return all;
}

// moved[i]: row i is row i - 1 with every column one further. Long rows are not looked at.
template <Host E, class I>
std::vector<uint8_t> moved_rows(const E& exec, const PatternView<I>& A) {
  constexpr int64_t most = 16;
  std::vector<uint8_t> moved(A.rows);
  for_each_row_range(exec, A, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = std::max<int64_t>(begin, 1); i < end; ++i) {
      const int64_t before = A.indptr[i - 1], start = A.indptr[i], count = A.indptr[i + 1] - start;
      if (count == 0 || count > most || count != start - before) continue;
      I others = 0;
      for (int64_t k = 0; k < count; ++k) others |= A.indices[start + k] ^ (A.indices[before + k] + 1);
      moved[i] = others == 0;
    }
  });
  return moved;
}

// Bit k of the result is set if byte k is; each is 0 or 1. The factor moves byte k to bit 56 + k, and no two others
// there.
inline uint64_t set_bytes(const uint8_t* bytes) {
  uint64_t eight;
  std::memcpy(&eight, bytes, sizeof eight);
  return eight * 0x0102040810204080 >> 56;
}

// n zeros. A large block of them is memory only where it is touched: of a dense row a band touches little.
template <class N>
struct Zeros {
  explicit Zeros(int64_t n) : numbers(static_cast<N*>(std::calloc(std::max<int64_t>(n, 1), sizeof(N))), &std::free) {
    if (!numbers) throw std::bad_alloc();
  }
  N* data() const { return numbers.get(); }
  std::unique_ptr<N, void (*)(void*)> numbers;
};

// Finds one row of A B after the other; one object a thread.
template <class T, class I>
class ProductRow {
 public:
  ProductRow(const Csr<T, I>& A, const Csr<T, I>& B, const uint8_t* moved_A, const uint8_t* moved_B)
      : A_(A),
        B_(B),
        moved_A_(moved_A),
        moved_B_(moved_B),
        row_(B.cols),
        marks_(B.cols + 64),
        blocks_(B.cols / 64 + 9),
        place_(B.cols) {}

  // Row i, behind row i - 1 of the same range; the number of its entries.
  [[gnu::always_inline]] inline int64_t find(int64_t i, I* columns, T* values) {
    if (count_ > 0 && moved_A_[i] && repeats(i)) return repeated(i, columns, values);
    I low = std::numeric_limits<I>::max(), high = -1;
    products_ = 0;
    for (int64_t p = A_.indptr[i]; p < A_.indptr[i + 1]; ++p) {
      const int64_t first = B_.indptr[A_.indices[p]], last = B_.indptr[A_.indices[p] + 1];
      if (first == last) continue;
      low = std::min(low, B_.indices[first]), high = std::max(high, B_.indices[last - 1]);
      products_ += last - first;
    }
    planned_ = false;
    if (products_ == 0) return count_ = 0;
    const bool far = products_ <= most_scattered && high - low > far_apart * products_;
    return count_ = far ? scattered(i, columns, values) : marked(i, low, high, columns, values);
  }

 private:
  static constexpr int64_t most_planned = 64, most_scattered = 256, far_apart = 512;

  // Whether all rows of B that row i of A names are those before them, moved.
  bool repeats(int64_t i) const {
    bool all = products_ <= most_planned;
    for (int64_t p = A_.indptr[i]; p < A_.indptr[i + 1]; ++p) all &= moved_B_[A_.indices[p]] != 0;
    return all;
  }

  // The products of row i, those of its first entry first, each entry's in the order of k: product t is A's entry
  // of_A_[t] of the row times B's entry of_B_[t]. In the next row that is one of the next row of B, step_[t] further.
  void plan(int64_t i, const I* columns) {
    I *place = place_.data(), ends[most_planned + 1] = {};
    for (int64_t s = 0; s < count_; ++s) place[columns[s]] = static_cast<I>(s);
    const auto for_each = [&](const auto& f) {
      for (int64_t p = A_.indptr[i]; p < A_.indptr[i + 1]; ++p) {
        const int64_t k = A_.indices[p];
        for (int64_t q = B_.indptr[k]; q < B_.indptr[k + 1]; ++q) f(p, q, k, place[B_.indices[q]]);
      }
    };
    for_each([&](int64_t, int64_t, int64_t, I s) { ++ends[s + 1]; });
    for (int64_t s = 0; s < count_; ++s) products_of_[s] = ends[s + 1], ends[s + 1] += ends[s];
    for_each([&](int64_t p, int64_t q, int64_t k, I s) {
      const I t = ends[s]++;
      of_A_[t] = static_cast<I>(p - A_.indptr[i]), of_B_[t] = static_cast<I>(q);
      step_[t] = B_.indptr[k + 1] - B_.indptr[k];
    });
    for (int64_t s = 0; s < count_; ++s) place[columns[s]] = 0;
    planned_ = true;
  }

  [[gnu::always_inline]] inline int64_t repeated(int64_t i, I* columns, T* values) {
    const I* before = columns - count_;
    if (!planned_) plan(i - 1, before);
    const T *a = A_.values + A_.indptr[i], *b = B_.values;
    for (int64_t t = 0; t < products_; ++t) of_B_[t] += step_[t];
    const I *of_A = of_A_, *of_B = of_B_;
    for (int64_t s = 0; s < count_; ++s) {
      Sum<T> sum = 0;
      for (const I* end = of_A + products_of_[s]; of_A < end; ++of_A, ++of_B)
        sum += static_cast<Sum<T>>(a[*of_A]) * static_cast<Sum<T>>(b[*of_B]);
      columns[s] = before[s] + 1;
      values[s] = static_cast<T>(sum);
    }
    return count_;
  }

  // Calls f(column, product) for every product of row i. The pointers are copied: a compiler must assume that a mark,
  // which is a byte, may be part of them.
  template <class F>
  [[gnu::always_inline]] inline void for_each_product(int64_t i, const F& f) const {
    const I *indptr = B_.indptr, *indices = B_.indices, *named = A_.indices;
    const T *b = B_.values, *a = A_.values;
    const int64_t end = A_.indptr[i + 1];
    for (int64_t p = A_.indptr[i]; p < end; ++p) {
      const auto factor = static_cast<Sum<T>>(a[p]);
      const int64_t last = indptr[named[p] + 1];
      for (int64_t q = indptr[named[p]]; q < last; ++q) f(indices[q], factor, static_cast<Sum<T>>(b[q]));
    }
  }

  int64_t scattered(int64_t i, I* columns, T* values) {
    constexpr int64_t side_by_side = 16;
    I found[most_scattered];
    Sum<T> sums[most_scattered];
    I count = 0, *place = place_.data();
    for_each_product(i, [&](I j, Sum<T> a, Sum<T> b) GOSSAMER_INLINED {
      const bool first = place[j] == 0;
      const I s = first ? count : place[j] - 1;
      const Sum<T> before = first ? Sum<T>{0} : sums[s];
      place[j] = s + 1;
      found[s] = j;
      sums[s] = before + a * b;
      count += first;
    });
    for (int64_t s = 0; s < count; ++s) place[found[s]] = 0;
    for (int64_t k = count; k % side_by_side; ++k) found[k] = 0;  // their ranks are not looked at
    simd([&]<int>() GOSSAMER_INLINED {
      for (int64_t first = 0; first < count; first += side_by_side) {
        I rank[side_by_side] = {};
        for (int64_t k = 0; k < count; ++k)
          for (int64_t l = 0; l < side_by_side; ++l) rank[l] += found[k] < found[first + l];
        for (int64_t l = 0; l < std::min<int64_t>(side_by_side, count - first); ++l) {
          columns[rank[l]] = found[first + l];
          values[rank[l]] = static_cast<T>(sums[first + l]);
        }
      }
    });
    return count;
  }

  [[gnu::always_inline]] inline int64_t marked(int64_t i, int64_t low, int64_t high, I* columns, T* values) {
    Sum<T>* const row = row_.data();
    uint8_t *const marks = marks_.data(), *const blocks = blocks_.data();
    for_each_product(i, [&](I j, Sum<T> a, Sum<T> b) GOSSAMER_INLINED {
      row[j] += a * b;
      marks[j] = 1;
      blocks[j / 64] = 1;
    });
    const I* const first = columns;
    for (int64_t block = low / 64; block <= high / 64; block += 8) {
      uint64_t left = set_bytes(blocks + block);
      if (left == 0) continue;
      std::memset(blocks + block, 0, 8);
      for (; left; left &= left - 1) {
        const int64_t j0 = 64 * (block + std::countr_zero(left));
        uint64_t bits = 0;
        for (int k = 0; k < 8; ++k) bits |= set_bytes(marks + j0 + 8 * k) << 8 * k;
        std::memset(marks + j0, 0, 64);
        for (; bits; bits &= bits - 1) {
          const int64_t j = j0 + std::countr_zero(bits);
          *columns++ = static_cast<I>(j);
          *values++ = static_cast<T>(std::exchange(row[j], Sum<T>{0}));
        }
      }
    }
    return columns - first;
  }

  const Csr<T, I>&A_, &B_;
  const uint8_t *moved_A_, *moved_B_;
  Zeros<Sum<T>> row_;
  Zeros<uint8_t> marks_, blocks_;
  Zeros<I> place_;  // one more than the entry that a column is, 0 if it is none
  I of_A_[most_planned], of_B_[most_planned], step_[most_planned], products_of_[most_planned];  // the plan
  int64_t count_ = 0, products_ = 0;                                                            // of the last row
  bool planned_ = false;                                                                        // for the last row
};

// Where the rows of one thread are: `count` entries from `begin` on, for rows first_row … last_row - 1.
struct RowsFound {
  int64_t first_row, last_row, begin, count;
};

// C = A B. work: before row i, the rows take work[i] products (spgemm_work); columns, values: work[rows]. The rows of a
// thread lie side by side, those of the next one behind the room of its products: `close_up` puts them together.
// indptr: rows + 1, counted from the first row of each thread. B's rows ascend, and perm is null in both.
template <Host E, class T, class I>
std::vector<RowsFound> first_product(const E& exec, const Csr<T, I>& A, const Csr<T, I>& B, const int64_t* work,
                                     I* indptr, I* columns, T* values) {
  constexpr int64_t worth_a_thread = 6144;  // products
  const PatternView<int64_t> all{A.rows, B.cols, work[A.rows], work, nullptr};
  const int64_t parts = std::clamp<int64_t>(all.nnz / worth_a_thread, 1, exec.threads());
  const std::vector<uint8_t> moved_A = moved_rows<E, I>(exec, A);
  const bool regular = 4 * std::ranges::count(moved_A, 1) > A.rows;  // else B's are not worth looking at
  const std::vector<uint8_t> moved_B = regular ? moved_rows<E, I>(exec, B) : std::vector<uint8_t>(B.rows);
  std::vector<RowsFound> found(parts);
  indptr[0] = 0;
  for_each_part(exec, all, parts, [&](int64_t k, int64_t begin, int64_t end) {
    ProductRow<T, I> row(A, B, moved_A.data(), moved_B.data());
    I *to_columns = columns + work[begin], *first = to_columns;
    T* to_values = values + work[begin];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t count = row.find(i, to_columns, to_values);
      to_columns += count, to_values += count;
      indptr[i + 1] = static_cast<I>(to_columns - first);
    }
    found[k] = {begin, end, work[begin], to_columns - first};
  });
  return found;
}

// The rows of all threads side by side, into other arrays: nnz(C) each. indptr then counts from the first row of all.
template <Host E, class T, class I>
void close_up(const E& exec, const std::vector<RowsFound>& found, const I* columns, const T* values, I* indptr,
              I* to_columns, T* to_values) {
  exec.parallel_for(static_cast<int64_t>(found.size()), [&](int64_t k) {
    I before = 0;
    for (int64_t l = 0; l < k; ++l) before += static_cast<I>(found[l].count);
    std::copy_n(columns + found[k].begin, found[k].count, to_columns + before);
    std::copy_n(values + found[k].begin, found[k].count, to_values + before);
    for (int64_t i = found[k].first_row; i < found[k].last_row; ++i) indptr[i + 1] += before;
  });
}

// Under Pool, compiled once: src/cpu/first_product.cpp.
#define GOSSAMER_FIRST_PRODUCT(T, I, ...)                                                                    \
  __VA_ARGS__ template std::vector<RowsFound> first_product(const Pool&, const Csr<T, I>&, const Csr<T, I>&, \
                                                            const int64_t*, I*, I*, T*);                     \
  __VA_ARGS__ template void close_up(const Pool&, const std::vector<RowsFound>&, const I*, const T*, I*, I*, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_FIRST_PRODUCT, extern)
#endif

}  // namespace gossamer::kernels
