// SPDX-License-Identifier: BSD-3-Clause
// The seam between a kernel and what runs it: nvcc and a GPU, or g++ and the emulator of the tests. Kernels are plain
// CUDA C++ (threadIdx, __shfl_sync, __syncthreads, atomicAdd …) and take from here what CUDA spells in a way no other
// compiler reads (`__shared__`, `<<<>>>`) or that is easy to get wrong (fences made by hand).
//
// What a kernel promises in return, because the emulator and the memory model hold it to that:
//   every loop that polls calls spin_pause(); work that waits for other blocks takes its place from a ticket counter;
//   nobody returns before a block barrier; a full-warp collective stands where the whole warp takes the same path;
//   `__restrict__` on a const pointer only for data that nobody writes during the kernel.
#pragma once
#include <cstdint>

#include <gossamer/kernels/exec.h>

#if defined(__CUDACC__)
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

// An array of n T shared by the threads of a block. It starts with no defined contents.
#define GOSSAMER_SHARED(T, name, n) __shared__ T name[n]

namespace gossamer::device {

// Flags passed between threads, at device scope: ld.acquire.gpu and st.release.gpu.
template <class T>
__device__ inline T load_acquire(const T* flag) {
  return __nv_atomic_load_n(const_cast<T*>(flag), __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
}
template <class T>
__device__ inline void store_release(T* flag, T value) {
  __nv_atomic_store_n(flag, value, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
}
__device__ inline void spin_pause() {
  __nanosleep(32);
}

// Queues kernel(args…) on the stream. An empty grid is an empty matrix, not an error.
template <class... P, class... A>
void launch(Cuda exec, void (*kernel)(P...), dim3 grid, dim3 block, A... args) {
  if (grid.x == 0) return;
  kernel<<<grid, block, 0, static_cast<cudaStream_t>(exec.stream)>>>(static_cast<P>(args)...);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    throw std::runtime_error(std::string("CUDA kernel launch: ") + cudaGetErrorString(error));
}

}  // namespace gossamer::device

#else
#include <tuple>

#include "emulator/builtins.h"

#define GOSSAMER_SHARED(T, name, n)    \
  static const char name##_of_block{}; \
  T* const name = static_cast<T*>(::emulator::shared(&name##_of_block, sizeof(T) * (n), alignof(T)))

namespace gossamer::device {

template <class T>
T load_acquire(const T* flag) {
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}
template <class T>
void store_release(T* flag, T value) {
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
  ::emulator::progress();
}
inline void spin_pause() {
  ::emulator::spin();
}

template <class... P, class... A>
void launch(Cuda, void (*kernel)(P...), dim3 grid, dim3 block, A... args) {
  if (grid.x == 0) return;
  ::emulator::queue([kernel, grid, block, bound = std::tuple<P...>(static_cast<P>(args)...)] {
    auto body = [&] { std::apply(kernel, bound); };
    ::emulator::run(grid, block, [](void* closure) { (*static_cast<decltype(body)*>(closure))(); }, &body);
  });
}

}  // namespace gossamer::device
#endif
