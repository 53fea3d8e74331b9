// SPDX-License-Identifier: BSD-3-Clause
// The machine state of a fiber: a place to go on from. On x86-64 a switch is a dozen instructions; elsewhere ucontext,
// which is portable but pays a system call for each.
#pragma once
#include <cstddef>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulator {

class Machine {
 public:
  // Makes the next switch_to(*this) call entry on the given stack. The entry must not return.
  void start(char* bottom, std::size_t size, void (*entry)());
  // Keeps this state and goes on from the other's; returns when someone switches back.
  void switch_to(Machine& other);

 private:
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
};

}  // namespace emulator
