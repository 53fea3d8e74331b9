// SPDX-License-Identifier: BSD-3-Clause
// Switching between fibers: save the registers a call must preserve, change the stack, restore.
#include "machine.h"

#include <algorithm>

#if defined(__x86_64__)
extern "C" void gossamer_emulator_switch(void** save, void* load);
asm(R"(
.text
.hidden gossamer_emulator_switch
.type gossamer_emulator_switch,@function
gossamer_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gossamer_emulator_switch,.-gossamer_emulator_switch
)");

namespace emulator {

void Machine::start(char* bottom, std::size_t size, void (*entry)()) {
  auto* top = reinterpret_cast<void**>(bottom + size);  // a multiple of 16
  std::fill(top - 8, top, nullptr);                     // six registers, the entry, no caller
  top[-2] = reinterpret_cast<void*>(entry);             // popped by `ret`: the stack is then as at any call
  stack_pointer_ = top - 8;
}
void Machine::switch_to(Machine& other) {
  gossamer_emulator_switch(&stack_pointer_, other.stack_pointer_);
}

}  // namespace emulator

#else
namespace emulator {

void Machine::start(char* bottom, std::size_t size, void (*entry)()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = bottom;
  context_.uc_stack.ss_size = size;
  makecontext(&context_, entry, 0);
}
void Machine::switch_to(Machine& other) {
  swapcontext(&context_, &other.context_);
}

}  // namespace emulator
#endif
