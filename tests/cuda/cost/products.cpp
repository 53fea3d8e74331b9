// SPDX-License-Identifier: BSD-3-Clause
// A X, Aᵀ X, U Vᵀ on a pattern, and sparse products in their three forms: A A, and, G being the gradient of that, its
// gradients G Aᵀ and Aᵀ G on A's pattern.
#include <algorithm>

#include <gossamer/kernels/sddmm.h>
#include <gossamer/kernels/spgemm.h>
#include <gossamer/kernels/spmm.h>
#include <gossamer/kernels/transpose.h>
#include "ops.h"

namespace cost {

using gossamer::Csr;
using gossamer::Cuda;
namespace kernels = gossamer::kernels;

Transposed transposed(const Pattern& A) {
  Transposed t{{A.cols, A.rows, {}, {}}, {}};
  t.pattern.indptr.resize(A.cols + 1), t.pattern.indices.resize(A.nnz()), t.perm.resize(A.nnz());
  kernels::transpose(A.view(), t.pattern.indptr.data(), t.pattern.indices.data(), t.perm.data());
  return t;
}

// The pattern of A A.
static Pattern squared(const Pattern& A) {
  Pattern C{A.rows, A.cols, {0}, {}};
  std::vector<int64_t> seen(A.cols, -1);
  for (int64_t i = 0; i < A.rows; ++i) {
    const auto first = static_cast<int64_t>(C.indices.size());
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      for (int64_t k = A.indices[p], q = A.indptr[k]; q < A.indptr[k + 1]; ++q)
        if (std::exchange(seen[A.indices[q]], i) != i) C.indices.push_back(A.indices[q]);
    std::sort(C.indices.begin() + first, C.indices.end());
    C.indptr.push_back(static_cast<int32_t>(C.indices.size()));
  }
  return C;
}

// Products of A A. On the pattern of A A none falls outside; its two gradients multiply the very same triples.
static double products_of(const Pattern& A) {
  double count = 0;
  for (const int32_t k : A.indices) count += A.indptr[k + 1] - A.indptr[k];
  return count;
}

// 2 flops for each product, in all of these.
template <class T>
Work spmm(const Pattern& A, Shape s, bool transpose) {
  const Transposed t = transpose ? transposed(A) : Transposed{};
  Csr<T, int32_t> matrix = with_values<T>(on_device(transpose ? t.pattern : A), s.heads);
  if (transpose) matrix.perm = copy(t.perm);
  const int64_t columns = s.heads * s.width;
  const T* X = numbers<T>(matrix.cols * columns);
  T *Y = array<T>(matrix.rows * columns), *scratch = array<T>(kernels::piece_places(A.nnz()) * columns);
  counted([&] { kernels::spmm(Cuda{}, matrix, X, columns, s.width, Y, scratch); });
  return {2.0 * static_cast<double>(A.nnz() * columns)};
}

template <class T>
Work sddmm(const Pattern& A, Shape s) {
  const auto pattern = on_device(A);
  const int64_t columns = s.heads * s.width;
  const T *U = numbers<T>(A.rows * columns), *V = numbers<T>(A.cols * columns);
  T* values = array<T>(A.nnz() * s.heads);
  counted([&] { kernels::sddmm(Cuda{}, pattern, s.heads, U, columns, V, columns, s.width, values); });
  return {2.0 * static_cast<double>(A.nnz() * columns)};
}

template <class T>
Work spgemm_nn(const Pattern& A, Shape) {
  const auto C = on_device(squared(A));
  const auto left = with_values<T>(on_device(A)), right = with_values<T>(on_device(A));
  T *values = array<T>(C.nnz), *scratch = array<T>(C.nnz);
  counted([&] { kernels::spgemm_nn(Cuda{}, left, right, C, values, scratch); });
  return {2 * products_of(A)};
}

template <class T>
Work spgemm_nt(const Pattern& A, Shape) {
  const auto G = with_values<T>(on_device(squared(A))), right = with_values<T>(on_device(A));
  const auto result = on_device(A);
  T* values = array<T>(A.nnz());
  counted([&] { kernels::spgemm_nt(Cuda{}, G, right, result, values); });
  return {2 * products_of(A)};
}

template <class T>
Work spgemm_tn(const Pattern& A, Shape) {
  const Transposed t = transposed(A);
  auto left = with_values<T>(on_device(t.pattern));
  left.perm = copy(t.perm);
  const auto G = with_values<T>(on_device(squared(A)));
  const auto result = on_device(A);
  T *values = array<T>(A.nnz()), *scratch = array<T>(A.nnz());
  counted([&] { kernels::spgemm_nn(Cuda{}, left, G, result, values, scratch); });
  return {2 * products_of(A)};
}

template <class T>
void add_products(Ops& ops) {
  ops["spmm"] = [](const Pattern& A, Shape s) { return spmm<T>(A, s, false); };
  ops["spmm_transposed"] = [](const Pattern& A, Shape s) { return spmm<T>(A, s, true); };
  ops["sddmm"] = sddmm<T>;
  ops["spgemm_nn"] = spgemm_nn<T>;
  ops["spgemm_nt"] = spgemm_nt<T>;
  ops["spgemm_tn"] = spgemm_tn<T>;
}
template void add_products<float>(Ops&);
template void add_products<double>(Ops&);

}  // namespace cost
