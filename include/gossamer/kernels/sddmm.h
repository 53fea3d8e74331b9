// SPDX-License-Identifier: BSD-3-Clause
// U Vᵀ on the entries of a pattern ("sampled dense-dense product"), for `heads` pairs of matrices.
//
//   values[p, h] = Σ_c U[i, h, c] V[indices[p], h, c]        p over row i;  O(nnz · heads · width)
//
// Pattern: rows × cols.  U: (rows, heads, width), rows `ldu` apart.  V: (cols, heads, width), rows `ldv` apart.
// Each entry is one sum in one order, whoever computes it: bitwise the same for every thread count.
#pragma once
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/locality.h>
#include <gossamer/kernels/prefetch.h>
#include <gossamer/kernels/runs.h>
#include <gossamer/kernels/simd.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// The definition as loops. Tests compare the tuned kernels with it.
namespace plain {
template <class T, class I>
void sddmm(const PatternView<I>& A, int64_t heads, const T* U, int64_t ldu, const T* V, int64_t ldv, int64_t width,
           T* values) {
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      for (int64_t h = 0; h < heads; ++h) {
        const T *u = U + i * ldu + h * width, *v = V + A.indices[p] * ldv + h * width;
        Sum<T> sum = 0;
        for (int64_t c = 0; c < width; ++c) sum += static_cast<Sum<T>>(u[c]) * static_cast<Sum<T>>(v[c]);
        values[p * heads + h] = static_cast<T>(sum);
      }
}
}  // namespace plain

// `entries` dot products u · V[j] at once, for the columns j of the entries at `indices`: u is read once for all of
// them, and their sums do not wait for each other. Each is `lanes` partial sums, then halves, then the remainder; the
// lanes of all are added together, of three as of four.
template <int lanes, int entries, class T, class I>
[[gnu::always_inline]] inline void sddmm_dots(const T* u, const T* V, int64_t ldv, const I* indices, int64_t width,
                                              T* values, int64_t heads) {
  constexpr int together = lanes < 4 ? 1 : entries == 3 ? 4 : entries;
  Vec<Sum<T>, lanes> sum[std::max(entries, together)] = {}, a, b;
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    load<lanes>(u + c, a);
    for (int k = 0; k < entries; ++k) {
      load<lanes>(V + indices[k] * ldv + c, b);
      sum[k] += a * b;
    }
  }
  Sum<T> totals[std::max(entries, together)];
  if constexpr (together > 1) {
    Vec<Sum<T>, together> sums;
    sums_of_lanes<lanes, together, together, Sum<T>>(sum, sums);
    __builtin_memcpy(totals, &sums, sizeof sums);
  } else {
    for (int k = 0; k < entries; ++k) totals[k] = sum_lanes<lanes, Sum<T>>(sum[k]);
  }
  for (int k = 0; k < entries; ++k) {
    for (int64_t r = c; r < width; ++r)
      totals[k] += static_cast<Sum<T>>(u[r]) * static_cast<Sum<T>>(V[indices[k] * ldv + r]);
    values[k * heads] = static_cast<T>(totals[k]);
  }
}

// The entries of row i, four at a time; u is that row of U. `far`: V is too large for the cache, and read in no order.
template <int lanes, bool far, class T, class I>
[[gnu::always_inline]] inline void sddmm_row(const PatternView<I>& A, int64_t i, int64_t heads, const T* u, const T* V,
                                             int64_t ldv, int64_t width, T* values) {
  for (int64_t p = A.indptr[i], count; p < A.indptr[i + 1]; p += count) {
    count = std::min<int64_t>(4, A.indptr[i + 1] - p);
    if constexpr (far)
      for (int64_t k = 0; k < count; ++k)
        prefetch(V + A.indices[std::min(p + k + entries_ahead, A.nnz - 1)] * ldv, heads * width);
    for (int64_t h = 0; h < heads; ++h) {
      const T *u_h = u + h * width, *V_h = V + h * width;
      T* out = values + p * heads + h;
      if (count == 4)
        sddmm_dots<lanes, 4>(u_h, V_h, ldv, A.indices + p, width, out, heads);
      else if (count == 3)
        sddmm_dots<lanes, 3>(u_h, V_h, ldv, A.indices + p, width, out, heads);
      else if (count == 2)
        sddmm_dots<lanes, 2>(u_h, V_h, ldv, A.indices + p, width, out, heads);
      else
        sddmm_dots<lanes, 1>(u_h, V_h, ldv, A.indices + p, width, out, heads);
    }
  }
}

// Vectors: values[p] = 0 + u[i] v[indices[p]], a sum like the others, so that -0 becomes 0.
template <class T, class I>
void sddmm_vectors(const PatternView<I>& A, int64_t begin, int64_t end, const T* u, int64_t ldu, const T* v,
                   int64_t ldv, T* values) {
  for (int64_t i = begin; i < end; ++i) {
    const Sum<T> a = u[i * ldu];
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      values[p] = static_cast<T>(Sum<T>{0} + a * static_cast<Sum<T>>(v[A.indices[p] * ldv]));
  }
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/sddmm.cu.
template <class T, class I>
[[gnu::weak]] void sddmm(Cuda, const PatternView<I>& A, int64_t heads, const T* U, int64_t ldu, const T* V, int64_t ldv,
                         int64_t width, T* values);

template <Host E, class T, class I>
void sddmm(const E& exec, const PatternView<I>& A, int64_t heads, const T* U, int64_t ldu, const T* V, int64_t ldv,
           int64_t width, T* values) {
  const bool far = is_far<T>(A.cols * ldv) && !rows_follow(A);
  const auto vectors = [&](int64_t begin, int64_t end) { sddmm_vectors(A, begin, end, U, ldu, V, ldv, values); };
  for_each_row_range(exec, A, heads * width, [&](int64_t begin, int64_t end) {
    if (heads * width == 1 && A.run_count > 0 && ldu == 1 && ldv == 1)
      return sddmm_runs(A, begin, end, U, V, values, vectors);
    if (heads * width == 1) return vectors(begin, end);
    simd([&]<int bytes> {
      with_lanes<bytes / sizeof(Sum<T>)>(width, [&]<int lanes> {
        for (int64_t i = begin; i < end; ++i)
          if (far)
            sddmm_row<lanes, true>(A, i, heads, U + i * ldu, V, ldv, width, values);
          else
            sddmm_row<lanes, false>(A, i, heads, U + i * ldu, V, ldv, width, values);
      });
    });
  });
}

// Under Pool, compiled once: src/cpu/sddmm.cpp.
#define GOSSAMER_SDDMM(T, I, ...)                                                                                    \
  __VA_ARGS__ template void sddmm(const Pool&, const PatternView<I>&, int64_t, const T*, int64_t, const T*, int64_t, \
                                  int64_t, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SDDMM, extern)
#endif

}  // namespace gossamer::kernels
