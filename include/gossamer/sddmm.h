// SPDX-License-Identifier: BSD-3-Clause
// U Vᵀ on the entries of a pattern ("sampled dense-dense product"), for `heads` pairs of matrices.
//
//   values[p, h] = Σ_c U[i, h, c] V[indices[p], h, c]        p over row i;  O(nnz · heads · width)
//
// Pattern: rows × cols.  U: (rows, heads, width), rows `ldu` apart.  V: (cols, heads, width), rows `ldv` apart.
// Each entry is one sum in one order, whoever computes it: bitwise the same for every thread count.
#pragma once
#include "exec.h"
#include "simd.h"

namespace gossamer::kernels {

// Σ_c u[c] v[c]: `lanes` partial sums, then pairwise.
template <int lanes, class T>
[[gnu::always_inline]] inline Sum<T> dot(const T* u, const T* v, int64_t width) {
  if constexpr (lanes > 1)
    if (width < lanes) return dot<lanes / 2>(u, v, width);
  Vec<Sum<T>, lanes> sum = {}, a, b;
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    load<lanes>(u + c, a);
    load<lanes>(v + c, b);
    sum += a * b;
  }
  Sum<T> rest = 0;
  for (; c < width; ++c) rest += static_cast<Sum<T>>(u[c]) * static_cast<Sum<T>>(v[c]);
  if constexpr (lanes == 1) {
    return sum + rest;
  } else {
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) sum[k] += sum[k + half];
    return sum[0] + rest;
  }
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/sddmm.cu.
template <class T, class I>
[[gnu::weak]] void sddmm(Cuda, const PatternView<I>& A, int64_t heads, const T* U, int64_t ldu, const T* V, int64_t ldv,
                         int64_t width, T* values);

template <Host E, class T, class I>
void sddmm(const E& exec, const PatternView<I>& A, int64_t heads, const T* U, int64_t ldu, const T* V, int64_t ldv,
           int64_t width, T* values) {
  constexpr int64_t ahead = 12, line = 64 / sizeof(T);
  constexpr int64_t near_bytes = 1 << 20;
  const bool far = A.cols * ldv * static_cast<int64_t>(sizeof(T)) > near_bytes;
  for_each_row_range(exec, A, heads * width, [&](int64_t begin, int64_t end) {
    simd([&]<int bytes> {
      constexpr int lanes = bytes / sizeof(Sum<T>);
      for (int64_t i = begin; i < end; ++i)
        for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
          if (far) {
            const T* next = V + A.indices[std::min(p + ahead, A.nnz - 1)] * ldv;
            for (int64_t c = 0; c < heads * width; c += line) __builtin_prefetch(next + c);
          }
          for (int64_t h = 0; h < heads; ++h)
            values[p * heads + h] =
                static_cast<T>(dot<lanes>(U + i * ldu + h * width, V + A.indices[p] * ldv + h * width, width));
        }
    });
  });
}

}  // namespace gossamer::kernels
