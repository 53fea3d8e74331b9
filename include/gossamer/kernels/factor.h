// SPDX-License-Identifier: BSD-3-Clause
// The factors of `heads` square matrices along a frozen pattern F that holds all they fill in. Pivots are the diagonal,
// in the order of the rows: whoever made F chose them. L and U have unit diagonals, and share F's entries with D:
//
//   A = L D U     w_ij = a_ij - Σ_{k < min(i, j)} w_ik u_kj     l_ij = w_ij / d_j     d_i = w_ii     u_ij = w_ij / d_i
//   A = L D Lᵀ    w_ij = a_ij - Σ_{k < j} w_ik l_jk             l_ij = w_ij / d_j     d_i = w_ii     i ≥ j
//
// F: n × n, with its diagonal, closed under elimination (`fill` makes it so); for L D Lᵀ its lower triangle, the
// diagonal last in each row. values (nnz, heads): A on F, 0 at what fills in; becomes L, D and U in place, float64 as
// with all engines. A pivot that is zero makes what follows infinite or NaN, which the caller finds.
// O(multiplications).
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// The place in row i of entry q of row k, which comes after column k: row i, of which entry p is in column k, has all
// of these. As many of them come before and after as in row k, which leaves few places or one.
template <class I>
GOSSAMER_HD inline int64_t place_in_row(const PatternView<I>& F, int64_t i, int64_t p, int64_t k, int64_t pivot,
                                        int64_t q) {
  return place_of(F.indices, p + (q - pivot), F.indptr[i + 1] - (F.indptr[k + 1] - q), F.indices[q]);
}

// The definitions as loops over rows. Tests compare the device's kernels with them.
namespace plain {

// `diagonal`: the place of entry (i, i), for each row i.
template <class I>
void factor_lu(const PatternView<I>& F, const I* diagonal, int64_t heads, double* values) {
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < F.rows; ++i) {
      const int64_t end = F.indptr[i + 1];
      for (int64_t p = F.indptr[i]; p < diagonal[i]; ++p) {
        const int64_t k = F.indices[p];
        double& w = values[p * heads + h];
        for (int64_t q = diagonal[k] + 1; q < F.indptr[k + 1]; ++q)
          values[place_in_row(F, i, p, k, diagonal[k], q) * heads + h] -= w * values[q * heads + h];
        w /= values[diagonal[k] * heads + h];
      }
      for (int64_t p = diagonal[i] + 1; p < end; ++p) values[p * heads + h] /= values[diagonal[i] * heads + h];
    }
}

template <class I>
void factor_ldlt(const PatternView<I>& F, int64_t heads, double* values) {
  const auto diagonal = [&F](int64_t i) { return static_cast<int64_t>(F.indptr[i + 1]) - 1; };
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < F.rows; ++i) {
      const int64_t begin = F.indptr[i];
      for (int64_t p = begin; p < diagonal(i); ++p) {
        const int64_t j = F.indices[p];
        for (int64_t q = F.indptr[j]; q < diagonal(j); ++q)
          if (const int64_t at = place_of(F.indices, begin, p, F.indices[q]); at < p && F.indices[at] == F.indices[q])
            values[p * heads + h] -= values[at * heads + h] * values[q * heads + h];
      }
      for (int64_t p = begin; p < diagonal(i); ++p) {
        const double w = values[p * heads + h];
        values[p * heads + h] /= values[diagonal(F.indices[p]) * heads + h];
        values[diagonal(i) * heads + h] -= w * values[p * heads + h];
      }
    }
}

}  // namespace plain

// A pattern with its diagonal and what elimination fills in.
template <class I>
struct Filled {
  std::vector<I> indptr, indices, diagonal;

  PatternView<I> view() const {
    const int64_t n = static_cast<int64_t>(diagonal.size());
    return {n, n, static_cast<int64_t>(indices.size()), indptr.data(), indices.data()};
  }
};

// Row i of F has the columns that row i of A reaches: its own, i, and, with a column k < i, those of row k of F that
// follow k (Rose & Tarjan 1978). Of row k one need not look beyond column s where row s, s < i, has column k: row s has
// the rest of row k as well (Eisenstat & Liu 1992). The columns of a row of A may come in any order.
template <class I>
Filled<I> fill(const PatternView<I>& A) {
  Filled<I> F;
  F.indptr.push_back(0);
  std::vector<int64_t> look_until(A.rows);
  std::vector<I> seen_by(A.rows, I{-1}), row;
  for (int64_t i = 0; i < A.rows; ++i) {
    row.clear();
    const auto visit = [&](I j) {
      if (seen_by[j] == static_cast<I>(i)) return;
      seen_by[j] = static_cast<I>(i);
      row.push_back(j);
    };
    visit(static_cast<I>(i));
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) visit(A.indices[p]);
    for (size_t r = 0; r < row.size(); ++r)  // the row grows meanwhile
      if (const int64_t k = row[r]; k < i)
        for (int64_t q = F.diagonal[k] + 1; q < look_until[k]; ++q) visit(F.indices[q]);
    std::sort(row.begin(), row.end());
    const int64_t begin = F.indptr.back(), end = begin + static_cast<int64_t>(row.size());
    if (end > std::numeric_limits<I>::max()) throw std::length_error("fill: more entries than the indices can count");
    F.indices.insert(F.indices.end(), row.begin(), row.end());
    F.indptr.push_back(static_cast<I>(end));
    F.diagonal.push_back(static_cast<I>(place_of(F.indices.data(), begin, end, static_cast<I>(i))));
    look_until[i] = end;
    for (int64_t p = begin; p < F.diagonal[i]; ++p) {
      const int64_t k = F.indices[p];
      const int64_t q = place_of(F.indices.data(), F.diagonal[k] + 1, look_until[k], static_cast<I>(i));
      if (q < look_until[k] && F.indices[q] == static_cast<I>(i)) look_until[k] = q + 1;
    }
  }
  return F;
}

// What the threads of a device tell each other, in the device's memory: which rows are taken, and which of the n rows
// are done. All begin as 0.
struct FactorProgress {
  unsigned long long* tickets;
  int* ready;
};

// On a CUDA device: pointers are the device's. Defined in src/cuda/factor.cu.
template <class I>
[[gnu::weak]] void factor_lu(Cuda, const PatternView<I>& F, const I* diagonal, int64_t heads, double* values,
                             const FactorProgress& progress);
template <class I>
[[gnu::weak]] void factor_ldlt(Cuda, const PatternView<I>& F, int64_t heads, double* values,
                               const FactorProgress& progress);

}  // namespace gossamer::kernels
