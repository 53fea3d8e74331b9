// SPDX-License-Identifier: BSD-3-Clause
// The softmax of each row over its stored entries. Values are (nnz, heads).
//
//   P[p, h] = exp(values[p, h] - m) / Σ_q exp(values[q, h] - m),        m = max_q values[q, h],  p, q over row i
//
// O(nnz · heads). One thread owns one row and adds in the order of p: bitwise the same for every thread count.
// The maximum is taken off first, so no finite input overflows. A row without entries has nothing to write.
#pragma once
#include <cmath>
#include <limits>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/half.h>
#include <gossamer/kernels/pieces.h>
#include <gossamer/kernels/types.h>

namespace gossamer::kernels {

// Heads h … h + width - 1 of the entries begin … end - 1, side by side: width <= most.
template <int most, class T>
void softmax_row(int64_t begin, int64_t end, int64_t heads, int64_t width, const T* values, T* P) {
  Sum<T> top[most], sum[most];
  for (int h = 0; h < width; ++h) top[h] = -std::numeric_limits<Sum<T>>::infinity(), sum[h] = 0;
  for (int64_t p = begin; p < end; ++p)
    for (int h = 0; h < width; ++h) {
      const Sum<T> v = values[p * heads + h];
      top[h] = v > top[h] ? v : top[h];
    }
  for (int64_t p = begin; p < end; ++p)
    for (int h = 0; h < width; ++h) sum[h] += std::exp(static_cast<Sum<T>>(values[p * heads + h]) - top[h]);
  for (int64_t p = begin; p < end; ++p)
    for (int h = 0; h < width; ++h)
      P[p * heads + h] = static_cast<T>(std::exp(static_cast<Sum<T>>(values[p * heads + h]) - top[h]) / sum[h]);
}

// On a CUDA device: pointers are the device's. Defined in src/cuda/softmax.cu. scratch: (piece_places(nnz), heads,
// 2).
template <class T, class I>
[[gnu::weak]] void row_softmax(Cuda, const Csr<T, I>& A, T* P, Sum<T>* scratch);

template <Host E, class T, class I>
void row_softmax(const E& exec, const Csr<T, I>& A, T* P) {
  constexpr int64_t side_by_side = 8, cost = 16;  // heads at once; an exponential is worth many additions
  for_each_row_range(exec, A, A.heads * cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t h = 0; h < A.heads; h += side_by_side)
        softmax_row<side_by_side>(A.indptr[i], A.indptr[i + 1], A.heads, std::min(A.heads - h, side_by_side),
                                  A.values + h, P + h);
  });
}

// Under Pool, compiled once: src/cpu/softmax.cpp.
#define GOSSAMER_SOFTMAX(T, I, ...) __VA_ARGS__ template void row_softmax(const Pool&, const Csr<T, I>&, T*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_FOR_EACH_TYPE(GOSSAMER_SOFTMAX, extern)
#endif

}  // namespace gossamer::kernels
