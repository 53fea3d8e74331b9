// SPDX-License-Identifier: BSD-3-Clause
// What kernels say about themselves: which warp of the grid am I, which lane of it, and sums over lanes. All for
// one-dimensional blocks of whole warps, taken through the grid in strides, so that any grid covers any size.
#pragma once
#include "device.h"

namespace gossamer::device {

inline constexpr int warp_lanes = 32;
inline constexpr int block_threads = 128;
inline constexpr int blocks_at_once = 8;  // on a multiprocessor: 64 registers a thread. Aiming higher, ptxas spills.
inline constexpr unsigned full_warp = 0xffffffffu;

__device__ inline int lane() {
  return static_cast<int>(threadIdx.x) % warp_lanes;
}
__device__ inline int64_t thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t threads() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}
__device__ inline int64_t warp() {
  return thread() / warp_lanes;
}
__device__ inline int64_t warps() {
  return threads() / warp_lanes;
}

// The sum of v over the lanes whose numbers differ only in the bits worth low … high/2, valid in each of them:
// sum_lanes<8, 1> over eight neighbours, sum_lanes<32, 8> over the four lanes that are eight apart. A fixed tree, so
// the same sum every time. Called by the whole warp.
template <int high, int low, class T>
__device__ inline T sum_lanes(T v) {
  for (int d = high / 2; d >= low; d /= 2) v += __shfl_xor_sync(full_warp, v, d);
  return v;
}

// The largest v of the warp, in every lane; none may be NaN. Called by the whole warp.
template <class T>
__device__ inline T max_lanes(T v) {
  for (int d = warp_lanes / 2; d > 0; d /= 2) {
    const T other = __shfl_xor_sync(full_warp, v, d);
    v = other > v ? other : v;
  }
  return v;
}

// Blocks for so many threads: as many as CUDA takes, kernels stride over the rest.
inline unsigned blocks_for(int64_t wanted) {
  constexpr int64_t most = 0x7fffffff;
  return static_cast<unsigned>(std::min((wanted + block_threads - 1) / block_threads, most));
}

// Queues a kernel whose jobs are taken by so many warps.
template <class... P, class... A>
void launch_warps(Cuda exec, void (*kernel)(P...), int64_t wanted, A... args) {
  launch(exec, kernel, blocks_for(wanted * warp_lanes), block_threads, args...);
}

}  // namespace gossamer::device
