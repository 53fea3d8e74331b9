// SPDX-License-Identifier: BSD-3-Clause
// A launch in flight: a grid of resident blocks, of warps, of threads, and the queue of the threads that can run.
#pragma once
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "emulator.h"
#include "machine.h"
#include "stack.h"

namespace emulator {

struct Block;
struct Warp;
enum class State : uint8_t { ready, at_barrier, in_collective, done };

struct Thread {
  Coordinates at;
  Block* block = nullptr;
  Warp* warp = nullptr;
  unsigned lane = 0;
  State state = State::ready;
  Word value{};                  // brought into a collective, then taken out of it
  unsigned source = 0;           // the lane a shuffle reads
  unsigned bits = 0, lanes = 0;  // as in Collected
  Machine machine;
  Stack stack;
  void* tsan_fiber = nullptr;
  void* asan_stack = nullptr;
};

// A collective that some of its lanes have reached.
struct Pending {
  Op op;
  unsigned mask, arrived;
};

struct Warp {
  Thread* lanes[32] = {};
  unsigned born = 0, live = 0;  // lanes that exist; that have not returned
  Pending pending[32];
  unsigned pendings = 0;
  char phase[2];  // addresses that stand for "all lanes reached this __syncwarp", in turn
  unsigned synced = 0;
  unsigned met = 0;  // collectives so far: between two of them the lanes run one after the other
};

struct Shared {
  const void* key;
  std::unique_ptr<char[]> bytes;
  size_t size;
};

struct Block {
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps;
  std::vector<Shared> shared;
  unsigned live = 0, arrived = 0;
  int predicates = 0, predicates_seen = 0;
  char phase[2];  // as in Warp, for __syncthreads
  unsigned synced = 0;
};

struct Grid {
  dim3 grid, block;
  void (*body)(void*) = nullptr;
  void* closure = nullptr;

  std::vector<Thread*> ready;  // a ring of 2^k places, never moved while fibers run
  size_t head = 0, count = 0;
  uint64_t live_threads = 0, idle_spins = 0;  // polls since anything last changed
  uint64_t random_state = 0;
  std::exception_ptr error;

  Machine scheduler;
  void* scheduler_fiber = nullptr;  // what the sanitizers call the scheduler's stack
  void* scheduler_asan = nullptr;
  const void* scheduler_bottom = nullptr;
  size_t scheduler_size = 0;

  uint64_t random();
  void make_ready(Thread* thread);
  Thread* take_ready();
};

inline constinit thread_local Grid* running_grid = nullptr;
inline constinit thread_local Thread* running = nullptr;

void enter(Thread* thread);  // from the scheduler into a thread, until it waits or ends
void leave();                // from the running thread back to the scheduler
void thread_main();          // a fiber's first and last frame
std::unique_ptr<Block> start_block(Grid& grid, unsigned index);
void retire(Grid& grid, Block& block);
[[noreturn]] void fail(const std::string& what);  // blames the running thread

}  // namespace emulator
