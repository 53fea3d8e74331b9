// SPDX-License-Identifier: BSD-3-Clause
// Executors that differ from Serial in what a kernel must not depend on: real threads, and another order. Both keep the
// largest number of parts they were given, so that a test knows its matrix was large enough to be split.
#pragma once
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include <gossamer/kernels/exec.h>

namespace gossamer::test {

// All parts at once, each on a thread of its own.
struct Threads {
  int64_t count;
  mutable int64_t parts = 1;

  explicit Threads(int64_t n) : count(n) {}
  int64_t threads() const { return count; }
  template <class F>
  void parallel_for(int64_t n, const F& f) const {
    parts = std::max(parts, n);
    std::vector<std::thread> running;
    for (int64_t k = 0; k < n; ++k) running.emplace_back([&f, k] { f(k); });
    for (std::thread& thread : running) thread.join();
  }
};

// The last part first, on the caller's thread, which says that it is many.
struct Backwards {
  int64_t count;
  mutable int64_t parts = 1;

  explicit Backwards(int64_t n) : count(n) {}
  int64_t threads() const { return count; }
  template <class F>
  void parallel_for(int64_t n, const F& f) const {
    parts = std::max(parts, n);
    for (int64_t k = n; k-- > 0;) f(k);
  }
};

static_assert(Host<Serial> && Host<Threads> && Host<Backwards> && Host<Pool>);

}  // namespace gossamer::test
