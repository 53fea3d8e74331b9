// SPDX-License-Identifier: BSD-3-Clause
// The stack of a fiber: mapped memory with an unmapped page below it, so that an overflow stops at once.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>

namespace emulator {

class Stack {
 public:
  static constexpr std::size_t size = 64 * 1024;

  Stack() {
    void* p = mmap(nullptr, guard + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    mprotect(p, guard, PROT_NONE);
    bottom_ = static_cast<char*>(p) + guard;
  }
  Stack(Stack&& other) noexcept : bottom_(std::exchange(other.bottom_, nullptr)) {}
  Stack& operator=(Stack&& other) noexcept {
    std::swap(bottom_, other.bottom_);
    return *this;
  }
  ~Stack() {
    if (bottom_) munmap(bottom_ - guard, guard + size);
  }
  char* bottom() const { return bottom_; }

 private:
  static constexpr std::size_t guard = 4096;
  char* bottom_ = nullptr;
};

}  // namespace emulator
