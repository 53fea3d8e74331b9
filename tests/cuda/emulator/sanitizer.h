// SPDX-License-Identifier: BSD-3-Clause
// How the emulator tells the sanitizers what it does. All hooks are weak, so that the same objects serve the plain, the
// ASan and the TSan build; where a sanitizer is absent its hooks are null and nothing happens.
#pragma once
#include <cstddef>

extern "C" {
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* save, const void** bottom, std::size_t* size);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
}

namespace emulator::sanitizer {

// Happens-before, through an address: what came before a release comes before what follows an acquire.
inline void acquire(void* address) {
  if (__tsan_acquire) __tsan_acquire(address);
}
inline void release(void* address) {
  if (__tsan_release) __tsan_release(address);
}

// A TSan fiber is born ordered after what its maker has done: a kernel sees what the host wrote before the launch.
inline void* create_fiber() {
  return __tsan_create_fiber ? __tsan_create_fiber(0) : nullptr;
}
inline bool has_fibers() {
  return __tsan_create_fiber != nullptr;
}
inline void* current_fiber() {
  return __tsan_get_current_fiber ? __tsan_get_current_fiber() : nullptr;
}
inline void destroy_fiber(void* fiber) {
  if (__tsan_destroy_fiber) __tsan_destroy_fiber(fiber);
}
// The switch itself orders nothing: running one after the other is the emulator's doing, not the kernel's.
inline void switch_fiber(void* fiber) {
  constexpr unsigned no_sync = 1;
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(fiber, no_sync);
}

// AddressSanitizer wants to know the stack it is on. `save` is null when the stack left will not be entered again.
inline void leave_stack(void** save, const void* bottom, std::size_t size) {
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(save, bottom, size);
}
inline void arrive_on_stack(void* save, const void** bottom, std::size_t* size) {
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(save, bottom, size);
}
inline void unpoison(const void* address, std::size_t size) {
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(address, size);
}

// While one of these lives, malloc, free and memset done for the scheduler are not taken for accesses of the kernel.
struct Unseen {
  Unseen() {
    if (!AnnotateIgnoreReadsBegin) return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unseen() {
    if (!AnnotateIgnoreReadsBegin) return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

}  // namespace emulator::sanitizer
