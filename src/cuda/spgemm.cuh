// SPDX-License-Identifier: BSD-3-Clause
// Sparse times sparse on a given pattern C, on a CUDA device. The contract is that of gossamer/spgemm.h; Aᵀ B is the
// first form with Aᵀ for A, whose values are read through perm.
//
// A warp owns a row of C, or a piece of a long one (pieces.cuh): entries of C do not need each other, so pieces need no
// second pass. Where its sums lie depends on how many they are: up to 32 in registers, up to 128 in shared memory,
// found by hashing, more in the scratch, found by searching. Products are added in the order of the inner index, each
// sum by one lane at a time, in a type that loses nothing: no floating-point atomics, the same bits every time and in
// each of the three.
#pragma once
#include <gossamer/kernels/spgemm.h>
#include "pieces.cuh"

namespace gossamer::kernels {

inline constexpr int row_capacity = 128;               // sums in shared memory
inline constexpr int table_places = 2 * row_capacity;  // at most half full, so a search ends soon
inline constexpr int nobody = -1;

// The place of `column` among the ascending columns first … last - 1, or last.
template <class I>
__device__ inline int64_t find_column(const I* columns, int64_t first, int64_t last, I column) {
  const int64_t at = place_of(columns, first, last, column);
  return at < last && columns[at] == column ? at : last;
}

// C[i, column] = Σ_k A[i, k] B[k, column], each lane having a column of its own. The lanes hold 32 entries of row k of
// B at a time, and each looks its column up among them by halving.
template <class T, class I>
__device__ inline Sum<T> sum_in_register(const Csr<T, I>& A, const Csr<T, I>& B, int64_t i, I column) {
  Sum<T> sum = 0;
  for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
    const int64_t k = A.indices[p], end = B.indptr[k + 1];
    const Sum<T> a = A.value(p);
    for (int64_t q = B.indptr[k]; q < end; q += device::warp_lanes) {
      const bool mine = q + device::lane() < end;
      const I held = mine ? B.indices[q + device::lane()] : static_cast<I>(B.cols);  // behind all columns
      const Sum<T> value = mine ? B.value(q + device::lane()) : Sum<T>{0};
      int at = 0;  // how many of the first 31 are less than `column`
      for (int step = device::warp_lanes / 2; step > 0; step /= 2)
        if (__shfl_sync(device::full_warp, held, at + step - 1) < column) at += step;
      const bool found = __shfl_sync(device::full_warp, held, at) == column;
      const Sum<T> b = __shfl_sync(device::full_warp, value, at);
      if (found) sum += a * b;
    }
  }
  return sum;
}

// Which of up to row_capacity columns a column is, by open addressing: a warp's part of shared memory.
template <class I>
struct ColumnTable {
  I* columns;   // row_capacity
  int* places;  // table_places: who is here, or nobody

  __device__ static unsigned first_place(I column) {
    return static_cast<unsigned>(column) * 0x9e3779b1u >> 24;  // Fibonacci hashing: 8 bits, as many as places
  }
  // Fills the table; which of two lanes comes first at a place changes where a column lies, not what is found for it.
  __device__ void fill(const I* from, int count) const {
    for (int n = device::lane(); n < table_places; n += device::warp_lanes) places[n] = nobody;
    for (int n = device::lane(); n < count; n += device::warp_lanes) columns[n] = from[n];
    __syncwarp();
    for (int n = device::lane(); n < count; n += device::warp_lanes) {
      unsigned at = first_place(columns[n]);
      while (atomicCAS(places + at, nobody, n) != nobody) at = (at + 1) % table_places;
    }
    __syncwarp();
  }
  __device__ int find(I column) const {
    unsigned at = first_place(column);
    while (places[at] != nobody && columns[places[at]] != column) at = (at + 1) % table_places;
    return places[at];
  }
};
static_assert(table_places == 1 << 8);

// sums[n] = C[i, columns[n]] for n < count. The lanes share the entries of row k of B, whose columns differ: no two
// lanes add to one sum. The next k waits. part(k) are the entries of row k of B that may count, find(column) says which
// sum takes them, or nobody.
template <class T, class I, class Part, class Find>
__device__ inline void add_products(const Csr<T, I>& A, const Csr<T, I>& B, int64_t i, const Part& part,
                                    const Find& find, int64_t count, Sum<T>* sums) {
  for (int64_t e = device::lane(); e < count; e += device::warp_lanes) sums[e] = 0;
  for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
    __syncwarp();
    const RowRange entries = part(A.indices[p]);
    const Sum<T> a = A.value(p);
    for (int64_t q = entries.begin + device::lane(); q < entries.end; q += device::warp_lanes)
      if (const int64_t at = find(B.indices[q]); at != nobody) sums[at] += a * B.value(q);
  }
  __syncwarp();
}

template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    spgemm_rows(Csr<T, I> A, Csr<T, I> B, PatternView<I> C, T* __restrict__ values, Sum<T>* scratch) {
  constexpr int warps = device::block_threads / device::warp_lanes;
  GOSSAMER_SHARED(I, all_columns, warps * row_capacity);
  GOSSAMER_SHARED(int, all_places, warps* table_places);
  GOSSAMER_SHARED(Sum<T>, all_sums, warps * row_capacity);
  const int own = static_cast<int>(threadIdx.x) / device::warp_lanes, lane = device::lane();
  for (int64_t job = device::warp(); job < device::runs_of(C); job += device::warps()) {
    const device::Run run = device::run_at(C, job);
    const int64_t first = run.begin, count = run.end - first;
    if (count == 0) continue;
    if (count <= device::warp_lanes) {
      const Sum<T> sum = sum_in_register(A, B, run.row, C.indices[first + (lane < count ? lane : 0)]);
      if (lane < count) values[first + lane] = static_cast<T>(sum);
      continue;
    }
    Sum<T>* sums = count <= row_capacity ? all_sums + own * row_capacity : scratch + first;
    if (count <= row_capacity) {
      const ColumnTable<I> table{all_columns + own * row_capacity, all_places + own * table_places};
      table.fill(C.indices + first, static_cast<int>(count));
      const auto part = [&](int64_t k) { return RowRange{B.indptr[k], B.indptr[k + 1]}; };
      add_products(A, B, run.row, part, [&](I j) { return table.find(j); }, count, sums);
    } else {
      const I* columns = C.indices + first;
      const auto part = [&](int64_t k) {  // a piece wants a part of the row alone
        const int64_t from = place_of<I>(B.indices, B.indptr[k], B.indptr[k + 1], columns[0]);
        return RowRange{from, place_of<I>(B.indices, from, B.indptr[k + 1], columns[count - 1] + 1)};
      };
      const auto find = [&](I j) {
        const int64_t at = find_column(columns, 0, count, j);
        return at < count ? at : nobody;
      };
      add_products(A, B, run.row, part, find, count, sums);
    }
    for (int64_t e = lane; e < count; e += device::warp_lanes) values[first + e] = static_cast<T>(sums[e]);
  }
}

// C[i, k] = A[i, :] · B[k, :]: the lanes look the entries of row k of B up in row i of A, and a shuffle tree adds.
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    spgemm_dots(Csr<T, I> A, Csr<T, I> B, PatternView<I> C, T* __restrict__ values) {
  for (int64_t job = device::warp(); job < device::runs_of(C); job += device::warps()) {
    const device::Run run = device::run_at(C, job);
    if (!run.any()) continue;
    const int64_t begin = A.indptr[run.row], end = A.indptr[run.row + 1];
    for (int64_t r = run.begin; r < run.end; ++r) {
      const int64_t k = C.indices[r];
      Sum<T> sum = 0;
      for (int64_t q = B.indptr[k] + device::lane(); q < B.indptr[k + 1]; q += device::warp_lanes)
        if (const int64_t at = find_column(A.indices, begin, end, B.indices[q]); at < end)
          sum += A.value(at) * B.value(q);
      sum = device::sum_lanes<device::warp_lanes, 1>(sum);
      if (device::lane() == 0) values[r] = static_cast<T>(sum);
    }
  }
}

}  // namespace gossamer::kernels
