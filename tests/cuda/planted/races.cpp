// SPDX-License-Identifier: BSD-3-Clause
// Planted races, most of which pass every run that only looks at numbers. Built with ThreadSanitizer and run with the
// name of a bug, it must be reported; `none` runs their repaired twins, which must not.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device.h"

using gossamer::Cuda;
using gossamer::device::launch;
using gossamer::device::load_acquire;
using gossamer::device::spin_pause;
using gossamer::device::store_release;

template <bool repaired>
__global__ static void barrier(double* out) {  // shared memory read without __syncthreads
  GOSSAMER_SHARED(double, held, 64);
  held[threadIdx.x] = threadIdx.x;
  if (repaired) __syncthreads();
  if (threadIdx.x == 0) out[0] = held[63];
}
template <bool repaired>
__global__ static void second_barrier(double* out) {  // shared memory written again while others still read it
  GOSSAMER_SHARED(double, held, 32);
  held[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = held[31 - threadIdx.x];
  if (repaired) __syncthreads();
  held[threadIdx.x] = 0;
}
template <bool repaired>
__global__ static void scatter(double* out) {  // += by many threads
  if (repaired)
    atomicAdd(&out[threadIdx.x % 3], 1);
  else
    out[threadIdx.x % 3] += 1;
}
template <bool repaired>
__global__ static void shuffle(double* out) {  // a shuffle taken for a fence: it orders no memory
  GOSSAMER_SHARED(double, held, 32);
  held[threadIdx.x] = threadIdx.x;
  (void)__shfl_sync(~0u, 1, 0);
  if (repaired) __syncwarp();
  out[threadIdx.x] = held[31 - threadIdx.x];
}
template <bool repaired>
__global__ static void flag(double* out, int* raised) {  // a flag without release and acquire
  if (blockIdx.x == 0) {
    out[0] = 1;
    repaired ? store_release(raised, 1) : void(atomicExch(raised, 1));
  } else {
    while (!(repaired ? load_acquire(raised) : atomicAdd(raised, 0))) spin_pause();
    out[1] = out[0];
  }
}
template <bool repaired>
__global__ static void early_flag(double* out, int* raised) {  // the flag before the value
  if (blockIdx.x == 0) {
    if (repaired) out[0] = 1;
    store_release(raised, 1);
    if (!repaired) out[0] = 1;
  } else {
    while (!load_acquire(raised)) spin_pause();
    out[1] = out[0];
  }
}

template <bool repaired>
static std::map<std::string, std::function<void()>> races(double* out, int* raised) {
  return {
      {"barrier", [=] { launch(Cuda{}, barrier<repaired>, 1, 64, out); }},
      {"second_barrier", [=] { launch(Cuda{}, second_barrier<repaired>, 1, 32, out); }},
      {"scatter", [=] { launch(Cuda{}, scatter<repaired>, 1, 64, out); }},
      {"shuffle", [=] { launch(Cuda{}, shuffle<repaired>, 1, 32, out); }},
      {"flag", [=] { launch(Cuda{}, flag<repaired>, 2, 1, out, raised); }},
      {"early_flag", [=] { launch(Cuda{}, early_flag<repaired>, 2, 1, out, raised); }},
  };
}

int main(int, char** argv) {
  std::vector<double> out(64);
  int raised = 0;
  if (argv[1] != std::string("none")) {
    races<false>(out.data(), &raised).at(argv[1])();
    return 0;
  }
  for (auto& [name, run] : races<true>(out.data(), &raised)) raised = 0, run();
  std::puts("no race");
}
