// SPDX-License-Identifier: BSD-3-Clause
// Kernels whose cost can be counted by hand.
#pragma once
#include <cstdint>

namespace cost {

// Lane k of a warp of its own reads in[k · stride] and writes out[k], for k < count ≤ 32.
void strided_copy(const float* in, int stride, float* out, int count);
// Every lane reads in[0] and adds it to out[lane].
void broadcast(const float* in, float* out);
// Lane k reads in[0 … k], once before and once after the warp meets; out[k] is the sum.
void triangle(const float* in, float* out);
// One warp moves 32 numbers through shared memory.
void through_shared(const float* in, float* out);
// Two warps of two blocks: one raises the flag, the other polls for it.
void handshake(int* flag, float* out);

}  // namespace cost
