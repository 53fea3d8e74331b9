// SPDX-License-Identifier: BSD-3-Clause
#include "signals/signals.h"

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>

#include "core/op.h"

namespace gossamer {
namespace {

// Functions of Python's library, which Python gives: the lock, and what looks for signals.
struct Signals {
  int (*lock)();
  int (*look)();
  void (*clear)();
  void (*send_again)();
  void (*unlock)(int);
};
std::atomic<const Signals*> signals{nullptr};

void set_signals(at::IntArrayRef a) {
  TORCH_CHECK_VALUE(a.size() == 5, "krylov_signals: five addresses are wanted, not ", a.size());
  const auto given = [&]<class F>(size_t k, F*) { return reinterpret_cast<F*>(a[k]); };
  static Signals of_python;
  of_python = {given(0, of_python.lock), given(1, of_python.look), given(2, of_python.clear),
               given(3, of_python.send_again), given(4, of_python.unlock)};
  signals = &of_python;
}

const Composites composites = Composites().def("krylov_signals(int[] functions) -> ()", set_signals);

}  // namespace

void throw_if_interrupted() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last = Clock::now();
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(50)) return;
  last = now;
  const Signals* python = signals.load();
  if (!python) return;
  const int state = python->lock();
  const bool raised = python->look() != 0;
  if (raised) python->clear(), python->send_again();
  python->unlock(state);
  TORCH_CHECK(!raised, "interrupted by a signal");
}

}  // namespace gossamer
