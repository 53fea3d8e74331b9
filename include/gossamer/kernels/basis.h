// SPDX-License-Identifier: BSD-3-Clause
// Long vectors and a few of them as a basis V (rows, n), row by row, as Lanczos keeps it:
//
//   h = V w                 coefficients, O(rows n)
//   w ← w - Vᵀ h            subtract, O(rows n)
//   out = S V, S (m, rows)  combine, O(m rows n)
//
// Twice the first two is Gram-Schmidt with full reorthogonalisation. All work in chunks of a fixed length, whose sums
// are added in order: bitwise the same for every thread count.
#pragma once
#include <algorithm>
#include <vector>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>

namespace gossamer::kernels {

constexpr int64_t basis_chunk = 2048;  // of each vector: a chunk of w stays in the first cache while the rows pass

// f(k, begin, end) for each chunk of n.
template <Host E, class F>
void for_each_chunk(const E& exec, int64_t n, const F& f) {
  const int64_t chunks = (n + basis_chunk - 1) / basis_chunk;
  const auto one = [&](int64_t k) { f(k, k * basis_chunk, std::min(n, (k + 1) * basis_chunk)); };
  if (chunks < 4 || exec.threads() == 1)
    for (int64_t k = 0; k < chunks; ++k) one(k);
  else
    exec.parallel_for(chunks, one);
}

// h (rows).
template <Host E>
void coefficients(const E& exec, int64_t rows, int64_t n, const double* V, const double* w, double* h) {
  const int64_t chunks = (n + basis_chunk - 1) / basis_chunk;
  std::vector<double> sums(static_cast<size_t>(chunks * rows));
  for_each_chunk(exec, n, [&](int64_t k, int64_t begin, int64_t end) {
    simd([&]<int> {
      for (int64_t r = 0; r < rows; ++r) {
        const double* v = V + r * n;
        double part[16] = {};  // independent sums, so that the additions do not wait for each other
        int64_t p = begin;
        for (; p + 16 <= end; p += 16)
          for (int s = 0; s < 16; ++s) part[s] += v[p + s] * w[p + s];
        for (; p < end; ++p) part[0] += v[p] * w[p];
        double sum = 0;
        for (const double one : part) sum += one;
        sums[static_cast<size_t>(k * rows + r)] = sum;
      }
    });
  });
  std::fill(h, h + rows, 0.0);
  for (int64_t k = 0; k < chunks; ++k)
    for (int64_t r = 0; r < rows; ++r) h[r] += sums[static_cast<size_t>(k * rows + r)];
}

// w (n), in place.
template <Host E>
void subtract(const E& exec, int64_t rows, int64_t n, const double* V, const double* h, double* w) {
  for_each_chunk(exec, n, [&](int64_t, int64_t begin, int64_t end) {
    simd([&]<int> {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t p = begin; p < end; ++p) w[p] -= h[r] * V[r * n + p];
    });
  });
}

// out (m, n), which must not be V.
template <Host E>
void combine(const E& exec, int64_t m, int64_t rows, int64_t n, const double* S, const double* V, double* out) {
  for_each_chunk(exec, n, [&](int64_t, int64_t begin, int64_t end) {
    simd([&]<int> {
      for (int64_t i = 0; i < m; ++i) {
        double* o = out + i * n;
        for (int64_t p = begin; p < end; ++p) o[p] = 0;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t p = begin; p < end; ++p) o[p] += S[i * rows + r] * V[r * n + p];
      }
    });
  });
}

// Under Pool, compiled once: src/cpu/basis.cpp.
#define GOSSAMER_BASIS(...)                                                                                     \
  __VA_ARGS__ template void coefficients(const Pool&, int64_t, int64_t, const double*, const double*, double*); \
  __VA_ARGS__ template void subtract(const Pool&, int64_t, int64_t, const double*, const double*, double*);     \
  __VA_ARGS__ template void combine(const Pool&, int64_t, int64_t, int64_t, const double*, const double*, double*);
#ifdef GOSSAMER_COMPILED
GOSSAMER_BASIS(extern)
#endif

}  // namespace gossamer::kernels
