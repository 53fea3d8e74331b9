// SPDX-License-Identifier: BSD-3-Clause
#include "standin_graph.h"

#include <cstdlib>
#include <mutex>
#include <vector>

#include "emulator/emulator.h"

namespace standin {
namespace {

// Backward passes run on a thread of torch's own, so that one capture may be fed by several threads.
std::mutex mutex;
std::vector<std::function<void()>> steps;
std::vector<void*> memory;
std::atomic<bool> open = false;

}  // namespace

bool capturing() {
  return open;
}

void keep_step(std::function<void()> step) {
  const std::lock_guard lock(mutex);
  steps.push_back(std::move(step));
}

void own(void* allocated) {
  const std::lock_guard lock(mutex);
  memory.push_back(allocated);
}

}  // namespace standin

// The graph before is gone, and its memory: nobody may look at its results after this.
extern "C" void gossamer_standin_begin_capture() {
  standin::steps.clear();
  for (void* allocated : standin::memory) std::free(allocated);
  standin::memory.clear();
  standin::open = true;
  emulator::captured = [](const std::function<void()>& launch) { standin::keep_step(launch); };
}

extern "C" void gossamer_standin_end_capture() {
  standin::open = false;
  emulator::captured = nullptr;
}

// How many steps were replayed.
extern "C" int64_t gossamer_standin_replay() {
  for (const auto& step : standin::steps) step();
  return static_cast<int64_t>(standin::steps.size());
}
