// SPDX-License-Identifier: BSD-3-Clause
// Which thread runs next, until the grid is done. Compile this folder WITHOUT -fsanitize: it tells the sanitizers about
// its fibers itself, and its own bookkeeping must stay invisible to them.
#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

#include "grid.h"
#include "sanitizer.h"

namespace emulator {

uint64_t Grid::random() {  // splitmix64
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void Grid::make_ready(Thread* thread) {
  const size_t wrap = ready.size() - 1, tail = (head + count++) & wrap;
  thread->state = State::ready;
  ready[tail] = thread;
  if (config.seed) std::swap(ready[tail], ready[(head + random() % count) & wrap]);
}

Thread* Grid::take_ready() {
  Thread* thread = ready[head];
  head = (head + 1) & (ready.size() - 1);
  --count;
  return thread;
}

static std::string deadlock(const std::vector<std::unique_ptr<Block>>& resident) {
  unsigned at_barrier = 0, in_collective = 0;
  for (auto& block : resident)
    for (auto& thread : block->threads) {
      at_barrier += thread->state == State::at_barrier;
      in_collective += thread->state == State::in_collective;
    }
  return "emulator: deadlock: " + std::to_string(at_barrier) + " threads at a block barrier, " +
         std::to_string(in_collective) + " in warp collectives, nobody can run";
}

static std::vector<unsigned> block_order(Grid& grid, unsigned blocks) {
  std::vector<unsigned> order(blocks);
  std::iota(order.begin(), order.end(), 0u);
  if (config.seed)
    for (size_t k = blocks; k > 1; --k) std::swap(order[k - 1], order[grid.random() % k]);
  return order;
}

// Runs all blocks, at most `at_once` of them together. Returns what went wrong between threads, if anything.
static std::string run_blocks(Grid& grid, unsigned blocks, unsigned at_once) {
  const sanitizer::Unseen unseen;
  const std::vector<unsigned> order = block_order(grid, blocks);
  std::vector<std::unique_ptr<Block>> resident;
  std::string verdict;
  for (size_t next = 0; !grid.error;) {
    while (resident.size() < at_once && next < blocks) resident.push_back(start_block(grid, order[next++]));
    if (resident.empty()) break;
    if (!grid.count) {
      verdict = deadlock(resident);
      break;
    }
    Thread* thread = grid.take_ready();
    Block* block = thread->block;
    enter(thread);
    if (block->live) continue;
    auto done = std::find_if(resident.begin(), resident.end(), [&](auto& b) { return b.get() == block; });
    retire(grid, **done);
    resident.erase(done);
  }
  for (auto& block : resident) retire(grid, *block);  // after an error: stacks are dropped as they stand
  return verdict;
}

void run(dim3 grid_dim, dim3 block_dim, void (*body)(void*), void* closure) {
  if (running_grid) fail("launch from inside a kernel");
  const uint64_t blocks = uint64_t{grid_dim.x} * grid_dim.y * grid_dim.z;
  const uint64_t threads = uint64_t{block_dim.x} * block_dim.y * block_dim.z;
  if (!blocks || blocks > 0x7fffffffu || grid_dim.y > 65535 || grid_dim.z > 65535)
    throw std::runtime_error("emulator: invalid grid");
  if (!threads || threads > 1024 || block_dim.z > 64) throw std::runtime_error("emulator: invalid block");
  const auto at_once = static_cast<unsigned>(std::min<uint64_t>(std::max(1u, config.resident_blocks), blocks));
  Grid grid;
  grid.grid = grid_dim;
  grid.block = block_dim;
  grid.body = body;
  grid.closure = closure;
  grid.ready.resize(std::bit_ceil(at_once * threads));
  grid.random_state = config.seed;
  grid.scheduler_fiber = sanitizer::current_fiber();
  ++stats.launches;
  running_grid = &grid;
  const std::string verdict = run_blocks(grid, static_cast<unsigned>(blocks), at_once);
  running_grid = nullptr;
  sanitizer::acquire(&grid);  // all the kernel did comes before what the host does next
  if (grid.error) std::rethrow_exception(grid.error);
  if (!verdict.empty()) throw std::runtime_error(verdict);
}

}  // namespace emulator
