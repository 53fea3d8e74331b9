// SPDX-License-Identifier: BSD-3-Clause
#include "toy_kernels.h"

#include "warp.cuh"

namespace cost {
namespace {

namespace device = gossamer::device;

template <class... P, class... A>
void launch(void (*kernel)(P...), unsigned blocks, A... args) {
  device::launch(gossamer::Cuda{}, kernel, blocks, 32, args...);
}

__global__ void copy_kernel(const float* in, int stride, float* out, int count) {
  if (device::lane() < count) out[device::lane()] = in[device::lane() * stride];
}
__global__ void broadcast_kernel(const float* in, float* out) {
  out[device::lane()] += in[0];
}
__global__ void triangle_kernel(const float* in, float* out) {
  float sum = 0;
  for (int turn = 0; turn < 2; ++turn) {
    for (int k = 0; k <= device::lane(); ++k) sum += in[k];
    __syncwarp();
  }
  out[device::lane()] = sum;
}
__global__ void shared_kernel(const float* in, float* out) {
  GOSSAMER_SHARED(float, held, 32);
  held[device::lane()] = in[device::lane()];
  __syncthreads();
  out[device::lane()] = held[31 - device::lane()];
}
__global__ void handshake_kernel(int* flag, float* out) {
  if (device::lane() != 0) return;
  if (blockIdx.x == 1) return device::store_release(flag, 1);
  while (device::load_acquire(flag) == 0) device::spin_pause();
  out[0] = 1;
}

}  // namespace

void strided_copy(const float* in, int stride, float* out, int count) {
  launch(copy_kernel, 1, in, stride, out, count);
}
void broadcast(const float* in, float* out) {
  launch(broadcast_kernel, 1, in, out);
}
void triangle(const float* in, float* out) {
  launch(triangle_kernel, 1, in, out);
}
void through_shared(const float* in, float* out) {
  launch(shared_kernel, 1, in, out);
}
void handshake(int* flag, float* out) {
  launch(handshake_kernel, 2, flag, out);
}

}  // namespace cost
