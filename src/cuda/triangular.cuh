// SPDX-License-Identifier: BSD-3-Clause
// L x = b on a CUDA device. The contract is that of gossamer/triangular.h:
//
//   x[i, h, :] = (b[i, h, :] - Σ_p values[p, h] x[indices[p], h, :]) / d[i, h]        p over row i, inside the triangle
//
// Without level sets, all rows are begun at once, and a row waits for the rows it needs, without a barrier between
// levels (Liu et al. 2016; Su et al. 2020): `ready[j]` is raised, with release, when x[j] is written, and polled, with
// acquire, before it is read. A warp takes its row from a counter of tickets, so that the rows it may wait for were all
// taken before its own, by warps that are running: the wait ends, however few blocks fit on the device.
// With level sets, a launch solves the rows of one level, which need nothing of each other: nobody waits.
// Each element of x has one writer and one order of addition, the same in both ways: the same bits every time.
#pragma once
#include <gossamer/kernels/triangular.h>
#include "warp.cuh"

namespace gossamer::kernels {

// Rows are solved by tickets: the first n from the end of the triangle that needs nothing.
__device__ inline int64_t next_ticket(unsigned long long* tickets) {
  unsigned long long ticket = 0;
  if (device::lane() == 0) ticket = atomicAdd(tickets, 1ull);
  return static_cast<int64_t>(__shfl_sync(device::full_warp, ticket, 0));
}

__device__ inline void wait_for(const int* ready) {
  while (device::load_acquire(ready) == 0) device::spin_pause();
}

// Row i for one head and one column: the lanes share the entries of the row, and a shuffle tree adds what they found.
// The diagonal is found by one lane, so that the same tree hands it to all. wait(j) returns when x[j] is there.
template <class T, class I, class Wait>
__device__ inline void solve_element(const Csr<T, I>& L, Triangle triangle, int64_t i, const T* __restrict__ b,
                                     int64_t ldb, T* x, unsigned long long* bad, const Wait& wait) {
  T sum = 0, diagonal = 0;
  for (int64_t p = L.indptr[i] + device::lane(); p < L.indptr[i + 1]; p += device::warp_lanes) {
    const int64_t j = L.indices[p];
    if (triangle.upper ? j > i : j < i) {
      wait(j);
      sum += L.value(p) * x[j];
    } else if (j == i) {
      diagonal = L.value(p);
    }
  }
  sum = device::sum_lanes<device::warp_lanes, 1>(sum);
  diagonal = device::sum_lanes<device::warp_lanes, 1>(diagonal);
  if (device::lane() > 0) return;
  if (triangle.unit_diagonal)
    diagonal = 1;
  else if (diagonal == 0)
    atomicMin(bad, static_cast<unsigned long long>(i));
  x[i] = (b[i * ldb] - sum) / diagonal;
}

// Row i for several heads or columns: a lane owns one of 32 neighbouring flat columns and adds the entries of the row
// one after the other, from the far end to the diagonal, as the host does. Columns do not need each other, so that a
// tile of 32 waits for the same tile of other rows alone.
template <class T, class I, class Wait>
__device__ inline void solve_tile(const Csr<T, I>& L, Triangle triangle, int64_t i, int64_t tile,
                                  const T* __restrict__ b, int64_t ldb, int64_t width, T* x, unsigned long long* bad,
                                  const Wait& wait) {
  const int64_t total = L.heads * width, q = tile * device::warp_lanes + device::lane(), h = q / width;
  const bool mine = q < total;
  T sum = mine ? b[i * ldb + q] : T(0), diagonal = triangle.unit_diagonal ? T(1) : T(0);
  const int64_t begin = L.indptr[i], end = L.indptr[i + 1];
  for (int64_t k = begin; k < end; ++k) {
    const int64_t p = triangle.upper ? end - 1 - (k - begin) : k, j = L.indices[p];
    if (triangle.upper ? j > i : j < i) {
      wait(j);
      if (mine) sum -= L.value(p, h) * x[j * total + q];
    } else if (j == i && !triangle.unit_diagonal && mine) {
      diagonal = L.value(p, h);
    }
  }
  if (!mine) return;
  if (diagonal == 0) atomicMin(bad, static_cast<unsigned long long>(i));
  x[i * total + q] = sum / diagonal;
}

// Without level sets: rows by tickets.
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    solve_vector(Csr<T, I> L, Triangle triangle, const T* __restrict__ b, int64_t ldb, T* x, SolveProgress progress) {
  for (int64_t ticket = next_ticket(progress.tickets); ticket < L.rows; ticket = next_ticket(progress.tickets)) {
    const int64_t i = triangle.upper ? L.rows - 1 - ticket : ticket;
    solve_element(L, triangle, i, b, ldb, x, progress.bad, [&](int64_t j) { wait_for(progress.ready + j); });
    if (device::lane() == 0) device::store_release(progress.ready + i, 1);
  }
}
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    solve_columns(Csr<T, I> L, Triangle triangle, const T* __restrict__ b, int64_t ldb, int64_t width, T* x,
                  SolveProgress progress) {
  const int64_t tiles = (L.heads * width + device::warp_lanes - 1) / device::warp_lanes;
  for (int64_t ticket = next_ticket(progress.tickets); ticket < L.rows * tiles;
       ticket = next_ticket(progress.tickets)) {
    const int64_t i = triangle.upper ? L.rows - 1 - ticket / tiles : ticket / tiles, tile = ticket % tiles;
    solve_tile(L, triangle, i, tile, b, ldb, width, x, progress.bad,
               [&](int64_t j) { wait_for(progress.ready + j * tiles + tile); });
    __syncwarp();  // all of the tile is written before lane 0 says so
    if (device::lane() == 0) device::store_release(progress.ready + i * tiles + tile, 1);
  }
}

// The level of row i is one more than the highest of those it needs, 0 without any: rows wait as in a solve.
template <class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    find_level_rows(PatternView<I> L, bool upper, I* level, SolveProgress progress) {
  for (int64_t ticket = next_ticket(progress.tickets); ticket < L.rows; ticket = next_ticket(progress.tickets)) {
    const int64_t i = upper ? L.rows - 1 - ticket : ticket;
    I highest = -1;
    for (int64_t p = L.indptr[i] + device::lane(); p < L.indptr[i + 1]; p += device::warp_lanes) {
      const int64_t j = L.indices[p];
      if (upper ? j <= i : j >= i) continue;
      wait_for(progress.ready + j);
      highest = max(highest, level[j]);
    }
    highest = device::max_lanes(highest);
    if (device::lane() > 0) continue;
    level[i] = highest + 1;
    device::store_release(progress.ready + i, 1);
  }
}

// One level: the rows rows[0] … rows[count - 1], which need only rows of earlier launches.
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    solve_level_vector(Csr<T, I> L, Triangle triangle, const I* __restrict__ rows, int64_t count,
                       const T* __restrict__ b, int64_t ldb, T* x, unsigned long long* bad) {
  for (int64_t n = device::warp(); n < count; n += device::warps())
    solve_element(L, triangle, rows[n], b, ldb, x, bad, [](int64_t) {});
}
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    solve_level_columns(Csr<T, I> L, Triangle triangle, const I* __restrict__ rows, int64_t count,
                        const T* __restrict__ b, int64_t ldb, int64_t width, T* x, unsigned long long* bad) {
  const int64_t tiles = (L.heads * width + device::warp_lanes - 1) / device::warp_lanes;
  for (int64_t n = device::warp(); n < count * tiles; n += device::warps())
    solve_tile(L, triangle, rows[n / tiles], n % tiles, b, ldb, width, x, bad, [](int64_t) {});
}

// A warp owns a row, its lanes the entries.
template <class T, class I>
__global__ void __launch_bounds__(device::block_threads, device::blocks_at_once)
    keep_rows(PatternView<I> L, Triangle triangle, int64_t heads, const T* __restrict__ in, T* __restrict__ out) {
  for (int64_t i = device::warp(); i < L.rows; i += device::warps())
    for (int64_t e = L.indptr[i] * heads + device::lane(); e < L.indptr[i + 1] * heads; e += device::warp_lanes) {
      const int64_t j = L.indices[e / heads];
      const bool kept = j == i ? !triangle.unit_diagonal : triangle.upper ? j > i : j < i;
      out[e] = kept ? in[e] : T(0.0f);
    }
}

}  // namespace gossamer::kernels
