// SPDX-License-Identifier: BSD-3-Clause
// From triplets and their values to CSR, the values moved along:
//
//   A[rows[k], cols[k]] += values[k]     and, if mirrored, also     A[cols[k], rows[k]] += mirror(values[k]) off the
//   diagonal
//
// coo.h answers where each triplet goes, which is what a derivative needs. Here nothing is differentiated and every
// byte counts: a counting sort by row, then by column only in rows that are not sorted yet. Files are usually sorted
// one way or the other, and then the counting sort, being stable, is all. O(m + n), or O(n log(longest row)) if
// unsorted. Equal places are added in the order they came, whatever the number of threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <gossamer/kernels/exec.h>

namespace gossamer::kernels {

struct NotMirrored {};  // in place of `mirror`: the triplets are the whole matrix

// How many entries the triplets make before equal places are added.
template <class I, class Mirror>
int64_t triplets_total(int64_t n, const I* rows, const I* cols, const Mirror&) {
  if constexpr (std::is_same_v<Mirror, NotMirrored>) return n;
  int64_t total = n;
  for (int64_t k = 0; k < n; ++k) total += rows[k] != cols[k];
  return total;
}

// Where the rows begin if the triplets come row by row, as in most files; false if they do not. indptr: m + 1.
template <class I>
bool triplets_in_order(int64_t m, int64_t n, const I* rows, I* indptr) {
  int64_t i = 0;
  indptr[0] = 0;
  for (int64_t k = 0; k < n; ++k) {
    if (rows[k] < i) return false;
    while (i < rows[k]) indptr[++i] = static_cast<I>(k);
  }
  while (i < m) indptr[++i] = static_cast<I>(n);
  return true;
}

// Sorts by row. indptr: m + 1; indices, out: triplets_total. A part is a run of triplets, and has its own place in
// every row, after those of the parts before it.
template <Host E, class T, class I, class Mirror>
void triplets_by_row(const E& exec, int64_t m, int64_t n, const I* rows, const I* cols, const T* values,
                     const Mirror& mirror, I* indptr, I* indices, T* out) {
  constexpr bool both = !std::is_same_v<Mirror, NotMirrored>;
  const int64_t most = std::min<int64_t>(n / (1 << 18), 4 * n / (m + 1));  // so that the counters stay small, too
  const int64_t parts = std::clamp<int64_t>(most, 1, std::max<int64_t>(exec.threads(), 1));
  std::vector<I> place(static_cast<size_t>(parts * m), I{0});
  const auto run = [&](const auto& f) {
    exec.parallel_for(parts, [&](int64_t part) {
      for (int64_t k = n / parts * part; k < (part + 1 == parts ? n : n / parts * (part + 1)); ++k)
        f(place.data() + part * m, k);
    });
  };
  run([&](I* counts, int64_t k) {
    ++counts[rows[k]];
    if constexpr (both)
      if (rows[k] != cols[k]) ++counts[cols[k]];
  });
  I sum = 0;
  for (int64_t i = 0; i < m; ++i) {
    indptr[i] = sum;
    for (int64_t part = 0; part < parts; ++part) {
      const I here = place[part * m + i];
      place[part * m + i] = sum;
      sum += here;
    }
  }
  indptr[m] = sum;
  run([&](I* next, int64_t k) {
    const I at = next[rows[k]]++;
    indices[at] = cols[k];
    out[at] = values[k];
    if constexpr (both)
      if (rows[k] != cols[k]) {
        const I other = next[cols[k]]++;
        indices[other] = rows[k];
        out[other] = mirror(values[k]);
      }
  });
}

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  return a + b;
}

// Whether the columns of a row ascend; equal ones count as repeated.
struct Order {
  bool sorted = true;
  int64_t repeated = 0;
};
template <class I>
Order column_order(int64_t n, const I* indices) {
  Order result;
  for (int64_t p = 1; p < n; ++p) {
    result.sorted &= indices[p - 1] <= indices[p];
    result.repeated += indices[p - 1] == indices[p];
  }
  return result;
}

// Sorts one row by column, equal columns as they came: by insertion where it is short.
template <class T, class I>
void sort_row(int64_t n, I* indices, T* values, std::vector<std::pair<I, T>>& row) {
  constexpr int64_t few = 32;
  if (n <= few) {
    for (int64_t p = 1; p < n; ++p) {
      const I column = indices[p];
      const T value = values[p];
      int64_t q = p;
      for (; q > 0 && indices[q - 1] > column; --q)
        std::tie(indices[q], values[q]) = std::tie(indices[q - 1], values[q - 1]);
      std::tie(indices[q], values[q]) = std::tie(column, value);
    }
    return;
  }
  row.clear();
  for (int64_t p = 0; p < n; ++p) row.emplace_back(indices[p], values[p]);
  std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (int64_t p = 0; p < n; ++p) std::tie(indices[p], values[p]) = row[p];
}

// Sorts rows by column, equal columns as they came. Returns how many entries have the column of the one before.
template <Host E, class T, class I>
int64_t sort_columns(const E& exec, int64_t m, const I* indptr, I* indices, T* values) {
  const PatternView<I> A{m, 0, indptr[m], indptr, indices};
  std::atomic<int64_t> repeated = 0;
  for_each_row_range(exec, A, 1, [&](int64_t begin, int64_t end) {
    std::vector<std::pair<I, T>> row;
    int64_t here = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = indptr[i], n = indptr[i + 1] - from;
      Order order = column_order(n, indices + from);
      if (!order.sorted) {
        sort_row(n, indices + from, values + from, row);
        order = column_order(n, indices + from);
      }
      here += order.repeated;
    }
    repeated += here;
  });
  return repeated;
}

// Adds up entries of equal place in sorted rows, in place. Returns how many remain.
template <class T, class I>
int64_t add_repeated(int64_t m, I* indptr, I* indices, T* values) {
  int64_t entries = 0, from = 0;
  for (int64_t i = 0; i < m; ++i) {
    const int64_t to = indptr[i + 1], first = entries;
    for (int64_t p = from; p < to; ++p) {
      if (entries > first && indices[entries - 1] == indices[p]) {
        values[entries - 1] = plus(values[entries - 1], values[p]);
      } else {
        indices[entries] = indices[p];
        values[entries++] = values[p];
      }
    }
    from = to;
    indptr[i + 1] = static_cast<I>(entries);
  }
  return entries;
}

}  // namespace gossamer::kernels
