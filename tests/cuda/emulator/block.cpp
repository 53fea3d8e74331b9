// SPDX-License-Identifier: BSD-3-Clause
// What the threads of a block share: the barrier and the shared arrays; and how a block begins and ends.
#include <algorithm>

#include "grid.h"
#include "sanitizer.h"

namespace emulator {

static thread_local std::vector<Stack> spare_stacks;

Barrier barrier(bool predicate) {
  Block& block = *running->block;
  const size_t all = block.threads.size();
  if (block.live != all) fail("__syncthreads() after some threads of the block have returned");
  char* phase = &block.phase[block.synced % 2];
  sanitizer::release(phase);
  running->state = State::at_barrier;
  block.predicates += predicate;
  if (++block.arrived == all) {
    block.predicates_seen = block.predicates;
    block.predicates = 0;
    block.arrived = 0;
    for (auto& thread : block.threads) running_grid->make_ready(thread.get());
    running_grid->idle_spins = 0;
    ++block.synced;
    ++stats.barriers;
  }
  leave();
  sanitizer::acquire(phase);
  return {block.predicates_seen, static_cast<int>(all)};
}

void* shared(const void* key, size_t bytes, size_t alignment) {
  constexpr size_t most = 48 * 1024;  // of static shared memory, on every GPU
  auto& arrays = running->block->shared;
  size_t total = bytes;
  for (Shared& array : arrays) {
    total += array.size;
    if (array.key != key) continue;
    if (array.size != bytes) fail("shared array declared with two sizes");
    return array.bytes.get();
  }
  if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__) fail("shared array: alignment too large");
  if (total > most) fail("more than 48 KiB of static shared memory");
  const sanitizer::Unseen unseen;
  // An allocation of its own, so that a sanitizer sees its ends; 0xFF is NaN in every floating-point format.
  arrays.push_back({key, std::make_unique<char[]>(bytes), bytes});
  std::fill_n(arrays.back().bytes.get(), bytes, static_cast<char>(0xFF));
  return arrays.back().bytes.get();
}

static Stack take_stack() {
  if (spare_stacks.empty()) return Stack();
  Stack stack = std::move(spare_stacks.back());
  spare_stacks.pop_back();
  return stack;
}

static std::unique_ptr<Thread> start_thread(Grid& grid, Block& block, unsigned index, uint3 block_at) {
  auto thread = std::make_unique<Thread>(Thread{.at = {}, .machine = {}, .stack = take_stack()});
  const dim3 n = grid.block;
  thread->at = {{index % n.x, index / n.x % n.y, index / (n.x * n.y)}, block_at, n, grid.grid};
  thread->block = &block;
  thread->warp = &block.warps[index / 32];
  thread->lane = index % 32;
  thread->warp->lanes[thread->lane] = thread.get();
  thread->warp->live = thread->warp->born |= 1u << thread->lane;
  sanitizer::unpoison(thread->stack.bottom(), Stack::size);
  // Stacks begin in different cache sets: 64 KiB apart they would all fight for the same ones.
  thread->machine.start(thread->stack.bottom(), Stack::size - index % 64 * 128, thread_main);
  thread->tsan_fiber = sanitizer::create_fiber();
  return thread;
}

std::unique_ptr<Block> start_block(Grid& grid, unsigned index) {
  auto block = std::make_unique<Block>();
  const unsigned threads = grid.block.x * grid.block.y * grid.block.z;
  const dim3 n = grid.grid;
  const uint3 at{index % n.x, index / n.x % n.y, index / (n.x * n.y)};
  block->live = threads;
  block->warps.resize((threads + 31) / 32);
  for (unsigned k = 0; k < threads; ++k) block->threads.push_back(start_thread(grid, *block, k, at));
  for (auto& thread : block->threads) grid.make_ready(thread.get());
  grid.live_threads += threads;
  stats.threads += threads;
  return block;
}

void retire(Grid& grid, Block& block) {
  for (auto& thread : block.threads) {
    if (!thread->tsan_fiber) {
      spare_stacks.push_back(std::move(thread->stack));
      continue;
    }
    if (thread->state != State::done) {  // given up after an error: what it did still precedes the launch's end
      sanitizer::switch_fiber(thread->tsan_fiber);
      sanitizer::release(&grid);
      sanitizer::switch_fiber(grid.scheduler_fiber);
    }
    sanitizer::destroy_fiber(thread->tsan_fiber);  // its stack is unmapped, so that TSan forgets accesses to it
  }
}

}  // namespace emulator
