// SPDX-License-Identifier: BSD-3-Clause
// The life of a CUDA thread as a fiber: entering it, leaving it, its first and last frame.
#include <stdexcept>

#include "grid.h"
#include "sanitizer.h"

namespace emulator {

static void leave_for_scheduler(Thread* me, void** asan_save) {
  Grid& grid = *running_grid;
  sanitizer::leave_stack(asan_save, grid.scheduler_bottom, grid.scheduler_size);
  sanitizer::switch_fiber(grid.scheduler_fiber);
  me->machine.switch_to(grid.scheduler);
}

void leave() {
  Thread* me = running;
  leave_for_scheduler(me, &me->asan_stack);
  sanitizer::arrive_on_stack(me->asan_stack, nullptr, nullptr);
}

void enter(Thread* thread) {
  Grid& grid = *running_grid;
  running = thread;
  ++stats.switches;
  sanitizer::leave_stack(&grid.scheduler_asan, thread->stack.bottom(), Stack::size);
  sanitizer::switch_fiber(thread->tsan_fiber);
  grid.scheduler.switch_to(thread->machine);
  sanitizer::arrive_on_stack(grid.scheduler_asan, nullptr, nullptr);
  running = nullptr;
}

// Those who still wait for this thread would wait for ever: on a GPU a hang, or worse, none.
static void finish(Grid& grid, Thread& me) {
  Warp& warp = *me.warp;
  me.state = State::done;
  warp.live &= ~(1u << me.lane);
  --me.block->live;
  --grid.live_threads;
  grid.idle_spins = 0;
  for (unsigned k = 0; k < warp.pendings; ++k)
    if (warp.pending[k].mask >> me.lane & 1) fail("thread returns while its warp waits for it in a collective");
  if (me.block->arrived) fail("thread returns while its block waits for it at __syncthreads()");
}

void thread_main() {
  Thread* me = running;
  Grid& grid = *running_grid;
  sanitizer::arrive_on_stack(nullptr, &grid.scheduler_bottom, &grid.scheduler_size);
  try {
    grid.body(grid.closure);
    sanitizer::release(&grid);
    finish(grid, *me);
  } catch (...) {
    me->state = State::done;
    grid.error = std::current_exception();
    sanitizer::release(&grid);
  }
  leave_for_scheduler(me, nullptr);
  std::terminate();  // a finished fiber is never entered again
}

void fail(const std::string& what) {
  const auto pair = [](uint3 at) { return std::to_string(at.x) + "," + std::to_string(at.y); };
  const Coordinates& at = running->at;
  throw std::runtime_error("emulator: " + what + " [block " + pair(at.block) + " thread " + pair(at.thread) + "]");
}

const Coordinates& here() {
  return running->at;
}

void spin() {
  Grid& grid = *running_grid;
  ++stats.spins;
  if (++grid.idle_spins > 1000 * (grid.live_threads + 10))
    fail("livelock: every running thread polls and nothing changes");
  grid.make_ready(running);
  leave();
}

void progress() {
  Grid& grid = *running_grid;
  grid.idle_spins = 0;
  if (!config.seed || grid.random() % 8 != 0) return;
  grid.make_ready(running);
  leave();
}

}  // namespace emulator
