// SPDX-License-Identifier: BSD-3-Clause
// Runs CUDA kernel source on the CPU, for tests. Every CUDA thread is a fiber with its own stack; one runs at a time
// and is left only where CUDA lets threads wait for one another: block barriers, warp collectives, spin_pause and,
// under a seed, atomics.
//
// What it checks beyond the numbers:
//   barriers and collectives that not everyone reaches, masks that disagree, shuffles from idle lanes, deadlock and
//   livelock: std::runtime_error from the launch, naming block and thread;
//   schedules: the order of blocks and threads is drawn from Config::seed, and each one repeats exactly;
//   AddressSanitizer and UBSan see every access; ThreadSanitizer sees each CUDA thread as a thread of its own, ordered
//   only by what orders threads on a GPU, so that a forgotten barrier is reported as the data race it is.
// What it cannot: speed, registers, occupancy, the read-only cache, nvcc's code.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace emulator {

struct Config {
  uint64_t seed = 0;             // 0: blocks in order, threads in turn; else a schedule drawn from it
  unsigned resident_blocks = 4;  // in flight at once; a GPU promises one
};
struct Stats {
  uint64_t launches = 0, threads = 0, switches = 0, collectives = 0, shuffles = 0, barriers = 0, spins = 0;
};
inline constinit thread_local Config config;  // for the launches to come
inline constinit thread_local Stats stats;    // since the test last cleared it

// Where the running thread stands, as CUDA's built-in variables say it.
struct Coordinates {
  uint3 thread, block;
  dim3 block_dim, grid_dim;
};
const Coordinates& here();

// A value on its way between lanes.
struct Word {
  uint64_t low, high;
};
enum class Op : uint8_t { sync, shuffle, ballot, match };
struct Collected {
  Word value;            // shuffle: what the source lane brought
  unsigned bits, lanes;  // ballot, match: the lanes that agree; the lanes that took part
};
Collected collective(Op op, unsigned mask, Word value, unsigned source_lane);

struct Barrier {
  int count, threads;  // whose predicate held; all of the block
};
Barrier barrier(bool predicate);

void spin();                                                    // gives way while polling
void progress();                                                // says that something others may poll for has changed
void* shared(const void* key, size_t bytes, size_t alignment);  // this block's array, filled with 0xFF: NaN
void run(dim3 grid, dim3 block, void (*body)(void*), void* closure);

// Every launch goes by here, so that a graph can keep those it captures: standin_graph.cpp.
inline std::atomic<void (*)(const std::function<void()>&)> captured = nullptr;
inline void queue(const std::function<void()>& launch) {
  if (const auto capture = captured.load()) capture(launch);
  launch();
}

}  // namespace emulator
