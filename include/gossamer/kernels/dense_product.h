// SPDX-License-Identifier: BSD-3-Clause
// The product of dense blocks, on which the factor of a sparse matrix is built:
//
//   C ← C - A Bᵀ        C: m × n        A: m × k        B: n × k
//
// C is cut into tiles of `tile` × `tile`. For each, A and B are copied in the order in which they are read (`packed`),
// and strips of C stay in registers meanwhile. A tile has one owner, who adds along k in one order: bitwise the same
// for every thread count. O(m n k).
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>

namespace gossamer {

// A dense matrix: element (i, j) is data[i * down + j * right]. The transpose is the same data with the steps swapped.
template <class T>
struct Block {
  T* data;
  int64_t rows, columns, down, right;

  T& operator()(int64_t i, int64_t j) const { return data[i * down + j * right]; }
  Block part(int64_t i, int64_t j, int64_t m, int64_t n) const { return {&(*this)(i, j), m, n, down, right}; }
  Block transposed() const { return {data, columns, rows, right, down}; }
  operator Block<const T>() const { return {data, rows, columns, down, right}; }
};

// By columns, columns `ld` apart.
template <class T>
Block<T> by_columns(T* data, int64_t rows, int64_t columns, int64_t ld) {
  return {data, rows, columns, 1, ld};
}

namespace kernels {

// The definition as loops. Tests compare the tuned kernel with it.
namespace plain {
template <class T>
void subtract_product(Block<T> C, Block<const T> A, Block<const T> B) {
  for (int64_t i = 0; i < C.rows; ++i)
    for (int64_t j = 0; j < C.columns; ++j)
      for (int64_t p = 0; p < A.columns; ++p) C(i, j) -= A(i, p) * B(j, p);
}
}  // namespace plain

// How an instruction set of so many bytes cuts a product: registers of C are vectors × columns.
template <class T, int bytes>
struct ProductShape {
  static constexpr int lanes = bytes / static_cast<int>(sizeof(T));
  static constexpr int vectors = 2, columns = bytes == 64 ? 8 : bytes == 32 ? 6 : 4;
  static constexpr int rows = lanes * vectors;
};

// Rows in strips of `strip`, each by columns; rows that are missing in the last strip are zero.
template <int strip, class T>
[[gnu::always_inline]] inline void pack(const Block<const T>& A, T* packed) {
  for (int64_t i = 0; i < A.rows; i += strip) {
    const int64_t count = std::min<int64_t>(strip, A.rows - i);
    const T* from = A.data + i * A.down;
    if (count == strip && A.down == 1) {
      for (int64_t p = 0; p < A.columns; ++p, packed += strip)
        __builtin_memcpy(packed, from + p * A.right, strip * sizeof(T));
      continue;
    }
    for (int64_t p = 0; p < A.columns; ++p, packed += strip)
      for (int64_t r = 0; r < strip; ++r) packed[r] = r < count ? from[r * A.down + p * A.right] : T{0};
  }
}

// C -= a bᵀ for one strip of each, C of at most that size.
template <class T, int bytes>
[[gnu::always_inline]] inline void subtract_strips(int64_t depth, const T* a, const T* b, const Block<T>& C) {
  using Shape = ProductShape<T, bytes>;
  constexpr int lanes = Shape::lanes, vectors = Shape::vectors, columns = Shape::columns;
  Vec<T, lanes> sum[vectors * columns] = {};
  for (int64_t p = 0; p < depth; ++p, a += Shape::rows, b += columns) {
    Vec<T, lanes> left[vectors];
    unrolled<vectors>([&]<int v> { load<lanes>(a + v * lanes, left[v]); });
    unrolled<columns, vectors>([&]<int c, int v> { sum[c * vectors + v] += left[v] * b[c]; });
  }
  if (C.rows == Shape::rows && C.columns == columns && C.down == 1) {
    unrolled<columns, vectors>([&]<int c, int v> {
      Vec<T, lanes> old;
      load<lanes>(C.data + c * C.right + v * lanes, old);
      old -= sum[c * vectors + v];
      store<lanes>(old, C.data + c * C.right + v * lanes);
    });
    return;
  }
  T all[Shape::rows * columns];
  unrolled<columns, vectors>(
      [&]<int c, int v> { store<lanes>(sum[c * vectors + v], all + c * Shape::rows + v * lanes); });
  for (int64_t c = 0; c < C.columns; ++c)
    for (int64_t r = 0; r < C.rows; ++r) C(r, c) -= all[c * Shape::rows + r];
}

// A product of which a column of C is a sum of few columns of A, all of them contiguous: nothing is copied.
template <int lanes, class T>
[[gnu::always_inline]] inline void subtract_thin(const Block<T>& C, const Block<const T>& A, const Block<const T>& B,
                                                 bool lower) {
  for (int64_t j = 0; j < C.columns; ++j) {
    int64_t i = lower ? j : 0;
    T* c = C.data + j * C.right;
    for (; i + lanes <= C.rows; i += lanes) {
      Vec<T, lanes> sum, other;
      load<lanes>(c + i, sum);
      for (int64_t p = 0; p < A.columns; ++p) {
        load<lanes>(A.data + p * A.right + i, other);
        sum -= other * B(j, p);
      }
      store<lanes>(sum, c + i);
    }
    for (; i < C.rows; ++i) {
      T sum = c[i];
      for (int64_t p = 0; p < A.columns; ++p) sum -= A.data[p * A.right + i] * B(j, p);
      c[i] = sum;
    }
  }
}

inline constexpr int64_t product_tile = 192, product_depth = 256;

// One tile of C. `lower`: strips that lie above the diagonal of C, whose first row is `below` rows under its first
// column, are left out.
template <class T>
void subtract_tile(const Block<T>& C, const Block<const T>& A, const Block<const T>& B, bool lower, int64_t below) {
  simd([&]<int bytes> {
    using Shape = ProductShape<T, bytes>;
    if (A.columns <= 4 && A.down == 1 && C.down == 1 && (!lower || below == 0))
      return subtract_thin<Shape::lanes>(C, A, B, lower);
    const auto up = [](int64_t n, int64_t step) { return (n + step - 1) / step * step; };
    const int64_t most = std::min(A.columns, product_depth), room_A = up(C.rows, Shape::rows) * most;
    const std::unique_ptr<T[]> room(new T[room_A + up(C.columns, Shape::columns) * most]);
    for (int64_t k = 0; k < A.columns; k += product_depth) {
      const int64_t depth = std::min(product_depth, A.columns - k);
      pack<Shape::rows>(A.part(0, k, A.rows, depth), room.get());
      pack<Shape::columns>(B.part(0, k, B.rows, depth), room.get() + room_A);
      for (int64_t j = 0; j < C.columns; j += Shape::columns)
        for (int64_t i = 0; i < C.rows; i += Shape::rows) {
          const int64_t m = std::min<int64_t>(Shape::rows, C.rows - i);
          const int64_t n = std::min<int64_t>(Shape::columns, C.columns - j);
          if (lower && i + m + below <= j) continue;
          subtract_strips<T, bytes>(depth, room.get() + i * depth, room.get() + room_A + j * depth, C.part(i, j, m, n));
        }
    }
  });
}

// `lower`: only what is on and below the diagonal of C is wanted; what becomes of the rest is not said.
template <Host E, class T>
void subtract_product(const E& exec, Block<T> C, Block<const T> A, Block<const T> B, bool lower = false) {
  if (C.rows == 0 || C.columns == 0 || A.columns == 0) return;
  const int64_t down = (C.rows + product_tile - 1) / product_tile,
                right = (C.columns + product_tile - 1) / product_tile;
  const auto tile = [&](int64_t k) {
    const int64_t i = k % down * product_tile, j = k / down * product_tile;
    const int64_t m = std::min(product_tile, C.rows - i), n = std::min(product_tile, C.columns - j);
    if (lower && i + m <= j) return;
    subtract_tile(C.part(i, j, m, n), A.part(i, 0, m, A.columns), B.part(j, 0, n, A.columns), lower, i - j);
  };
  if (exec.threads() > 1 && down * right > 1) return exec.parallel_for(down * right, tile);
  for (int64_t k = 0; k < down * right; ++k) tile(k);
}

}  // namespace kernels
}  // namespace gossamer
