// SPDX-License-Identifier: BSD-3-Clause
// Test only: CUDA graphs of the stand-in. While one is captured, every launch and every operator that runs on the
// device is kept, with the memory it reads and writes; a replay does the same work in the same memory, whatever is in
// it then. What a real capture forbids is refused: to copy between host and device, and to look at a number.
#pragma once
#include <functional>

namespace standin {

bool capturing();
// Keeps one step of the work.
void keep_step(std::function<void()> step);
// Memory that was allocated meanwhile belongs to the graph: kernels know it by address alone.
void own(void* memory);

}  // namespace standin
