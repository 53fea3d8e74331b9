// SPDX-License-Identifier: BSD-3-Clause
// Products on one of many processes, whose dense operand is in two arrays: the own rows, and the halo, which comes from
// others while rows that need none of it are computed.
//
//   Y[i] = Σ_p values[p] X[j]  or  values[p] H[j - owned],    j = indices[p] < owned or not        p over row i
//
// The rows that need no halo are ranges; they are computed by the kernels of spmm.h and sddmm.h, on views of the
// matrix. The others are between them: the border. Sums are made in the same order as there, of the same products: the
// bits are those of one array [X; H].
#pragma once
#include <gossamer/kernels/sddmm.h>
#include <gossamer/kernels/spmm.h>

namespace gossamer {

// Rows 0 … owned - 1 are those of X, the others those of H.
template <class T>
struct TwoSources {
  const T* X;
  int64_t ldx;
  const T* H;
  int64_t ldh, owned;

  [[gnu::always_inline]] const T* row(int64_t j) const { return j < owned ? X + j * ldx : H + (j - owned) * ldh; }
};

// A matrix some of whose values came from others: value q is values[q], or, from q = own on, came[q - own].
template <class T, class I>
struct CsrOfMany : Csr<T, I> {
  const T* came = nullptr;
  int64_t own = 0;

  [[gnu::always_inline]] Sum<T> value(int64_t p, int64_t h = 0) const {
    const int64_t q = this->perm ? this->perm[p] : p;
    return static_cast<Sum<T>>(q < own ? this->values[q * this->heads + h] : came[(q - own) * this->heads + h]);
  }
};

// Ranges of rows, {begin, end, begin, end, …}, ascending.
struct Ranges {
  const int64_t* rows;
  int64_t count;

  int64_t begin(int64_t k) const { return rows[2 * k]; }
  int64_t end(int64_t k) const { return rows[2 * k + 1]; }
  // f(begin, end) for the rows between the ranges, of the rows from … to - 1.
  template <class F>
  void between(int64_t from, int64_t to, const F& f) const {
    for (int64_t k = 0; k < count && from < to; ++k) {
      if (const int64_t stop = std::min(begin(k), to); from < stop) f(from, stop);
      from = std::max(from, end(k));
    }
    if (from < to) f(from, to);
  }
};

namespace kernels {

// The rows begin … end - 1 as a matrix of their own. Its indptr does not begin with 0, which no product minds.
template <class M>
M rows_of(M A, int64_t begin, int64_t end) {
  A.rows = end - begin, A.indptr += begin, A.run_count = 0, A.runs = nullptr;
  return A;
}

template <Host E, class T, class I>
void spmm_inside(const E& exec, const Csr<T, I>& A, const Ranges& inside, const T* X, int64_t ldx, int64_t width,
                 T* Y) {
  const bool vector = A.heads * width == 1;
  for (int64_t k = 0; k < inside.count; ++k) {
    const int64_t begin = inside.begin(k), end = inside.end(k);
    const Csr<T, I> rows = rows_of(A, begin, end);
    if (!vector)
      spmm(exec, rows, X, ldx, width, Y + begin * A.heads * width);
    else  // runs are those of all rows
      for_each_row_range(exec, rows, 1, [&](int64_t from, int64_t to) {
        if (from < to) (A.perm ? spmv<true, T, I> : spmv<false, T, I>)(A, begin + from, begin + to, X, ldx, Y);
      });
  }
}

// `vectors` registers of columns of one row, as spmm_tile; X is at the column c.
template <int lanes, int vectors, class T, class I>
[[gnu::always_inline]] inline void border_tile(const CsrOfMany<T, I>& A, int64_t i, int64_t h, const TwoSources<T>& X,
                                               int64_t c, T* y) {
  Vec<Sum<T>, lanes> sum[vectors] = {}, x;
  for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
    prefetch(X.row(A.indices[std::min(p + entries_ahead, A.nnz - 1)]) + c, vectors * lanes);
    if constexpr (lanes == 1) asm volatile("");  // see spmm_tile
    const Sum<T> a = A.value(p, h);
    const T* row = X.row(A.indices[p]) + c;
    for (int k = 0; k < vectors; ++k) {
      load<lanes>(row + k * lanes, x);
      sum[k] += a * x;
    }
  }
  for (int k = 0; k < vectors; ++k) store<lanes>(sum[k], y + k * lanes);
}

template <int lanes, class T, class I>
[[gnu::always_inline]] inline void border_row(const CsrOfMany<T, I>& A, int64_t i, const TwoSources<T>& X,
                                              int64_t width, T* Y) {
  for (int64_t h = 0; h < A.heads; ++h) {
    T* y = Y + (i * A.heads + h) * width;
    int64_t c = 0;
    for (; c + 4 * lanes <= width; c += 4 * lanes) border_tile<lanes, 4>(A, i, h, X, h * width + c, y + c);
    for (; c + lanes <= width; c += lanes) border_tile<lanes, 1>(A, i, h, X, h * width + c, y + c);
    if (c < width) c = width - lanes, border_tile<lanes, 1>(A, i, h, X, h * width + c, y + c);
  }
}

// y[i] = Σ_p values[p] x[indices[p]]: one vector. Not in vector code, as the sums of spmv are not.
template <class T, class I>
void border_spmv(const CsrOfMany<T, I>& A, int64_t begin, int64_t end, const TwoSources<T>& x, T* y) {
  for (int64_t i = begin; i < end; ++i) {
    Sum<T> sum = 0;
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      sum += A.value(p) * static_cast<Sum<T>>(*x.row(A.indices[p]));
    y[i] = static_cast<T>(sum);
  }
}

template <Host E, class T, class I>
void spmm_border(const E& exec, const CsrOfMany<T, I>& A, const Ranges& inside, const TwoSources<T>& X, int64_t width,
                 T* Y) {
  for_each_row_range(exec, A, A.heads * width, [&](int64_t from, int64_t to) {
    inside.between(from, to, [&](int64_t begin, int64_t end) {
      if (A.heads * width == 1) return border_spmv(A, begin, end, X, Y);
      simd([&]<int bytes> {
        with_lanes<bytes / sizeof(Sum<T>)>(width, [&]<int lanes> {
          for (int64_t i = begin; i < end; ++i) border_row<lanes>(A, i, X, width, Y);
        });
      });
    });
  });
}

// y = A x as spmv_transposed makes it, A being the transpose there: each row of A in parts, by the part of each column,
// whose sums are added up in order. part: one of 0 … parts - 1 for each column, ascending in the order of a row.
template <Host E, class T, class I>
void spmv_in_parts(const E& exec, const CsrOfMany<T, I>& A, const uint8_t* part, const TwoSources<T>& x, T* y) {
  for_each_row_range(exec, A, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T total = 0, sum = 0;
      uint8_t now = 0;
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
        const int64_t j = A.indices[p];
        if (part[j] != now) total += sum, sum = 0, now = part[j];
        sum += A.value(p) * *x.row(j);
      }
      y[i] = total + sum;
    }
  });
}

template <Host E, class T, class I>
void sddmm_inside(const E& exec, const PatternView<I>& A, const Ranges& inside, int64_t heads, const T* U, int64_t ldu,
                  const T* V, int64_t ldv, int64_t width, T* values) {
  for (int64_t k = 0; k < inside.count; ++k)
    sddmm(exec, rows_of(A, inside.begin(k), inside.end(k)), heads, U + inside.begin(k) * ldu, ldu, V, ldv, width,
          values);
}

template <Host E, class T, class I>
void sddmm_border(const E& exec, const PatternView<I>& A, const Ranges& inside, int64_t heads, const T* U, int64_t ldu,
                  const TwoSources<T>& V, int64_t width, T* values) {
  constexpr int64_t here = 0;  // the row of V is found already
  const auto entries = [&](int64_t begin, int64_t end, const auto& f) GOSSAMER_INLINED {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) f(U + i * ldu, V.row(A.indices[p]), values + p * heads);
  };
  for_each_row_range(exec, A, heads * width, [&](int64_t from, int64_t to) {
    inside.between(from, to, [&](int64_t begin, int64_t end) {
      if (heads * width == 1)
        return entries(begin, end, [](const T* u, const T* v, T* out) {
          *out = static_cast<T>(Sum<T>{0} + static_cast<Sum<T>>(*u) * static_cast<Sum<T>>(*v));
        });
      simd([&]<int bytes> {
        with_lanes<bytes / sizeof(Sum<T>)>(width, [&]<int lanes> {
          entries(begin, end, [&](const T* u, const T* v, T* out) GOSSAMER_INLINED {
            for (int64_t h = 0; h < heads; ++h)
              sddmm_dots<lanes, 1>(u + h * width, v + h * width, 0, &here, width, out + h, heads);
          });
        });
      });
    });
  });
}

// Under Pool, compiled once: src/cpu/border.cpp.
#define GOSSAMER_BORDER(T, I, ...)                                                                                     \
  __VA_ARGS__ template void spmm_inside(const Pool&, const Csr<T, I>&, const Ranges&, const T*, int64_t, int64_t, T*); \
  __VA_ARGS__ template void spmm_border(const Pool&, const CsrOfMany<T, I>&, const Ranges&, const TwoSources<T>&,      \
                                        int64_t, T*);                                                                  \
  __VA_ARGS__ template void sddmm_inside(const Pool&, const PatternView<I>&, const Ranges&, int64_t, const T*,         \
                                         int64_t, const T*, int64_t, int64_t, T*);                                     \
  __VA_ARGS__ template void sddmm_border(const Pool&, const PatternView<I>&, const Ranges&, int64_t, const T*,         \
                                         int64_t, const TwoSources<T>&, int64_t, T*);
#define GOSSAMER_SPMV_IN_PARTS(T, I, ...)                                                                            \
  __VA_ARGS__ template void spmv_in_parts(const Pool&, const CsrOfMany<T, I>&, const uint8_t*, const TwoSources<T>&, \
                                          T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_BORDER, extern)
GOSSAMER_FOR_EACH_REAL_TYPE(GOSSAMER_SPMV_IN_PARTS, extern)
#endif

}  // namespace kernels
}  // namespace gossamer
