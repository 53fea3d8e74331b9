// SPDX-License-Identifier: BSD-3-Clause
// What g++ calls for each load and store of code compiled with -fsanitize=thread. ThreadSanitizer's own library is not
// linked: these are its names, and they count. The place in the code is the address that a call returns to. Compile
// this file WITHOUT -fsanitize.
#include <cstddef>
#include <cstdint>

#include "counter.h"

using cost::Kind;
using cost::touch;

#define HERE __builtin_return_address(0)
#define COUNTED(name, bytes, kind)     \
  void __tsan_##name(void* address) {  \
    touch(address, bytes, kind, HERE); \
  }
#define COUNTED_OF_SIZE(bytes)                      \
  COUNTED(read##bytes, bytes, Kind::load)           \
  COUNTED(write##bytes, bytes, Kind::store)         \
  COUNTED(unaligned_read##bytes, bytes, Kind::load) \
  COUNTED(unaligned_write##bytes, bytes, Kind::store)

// Atomics must also be done. Only one fiber runs at a time, but the host's other threads are none of our business.
#define ATOMICS(bits)                                                                                      \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* p, int) {                       \
    touch(const_cast<uint##bits##_t*>(p), bits / 8, Kind::atomic, HERE);                                   \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                           \
  }                                                                                                        \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* p, uint##bits##_t v, int) {                    \
    touch(const_cast<uint##bits##_t*>(p), bits / 8, Kind::store, HERE);                                    \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                              \
  }                                                                                                        \
  /* The emulator's atomics are a load and this: what a GPU's do in one step in the second-level cache. */ \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t* p, uint##bits##_t* expected,  \
                                                    uint##bits##_t v, int, int) {                          \
    touch(const_cast<uint##bits##_t*>(p), bits / 8, Kind::store, HERE);                                    \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
  }

extern "C" {
COUNTED_OF_SIZE(1)
COUNTED_OF_SIZE(2)
COUNTED_OF_SIZE(4)
COUNTED_OF_SIZE(8)
COUNTED_OF_SIZE(16)
void __tsan_read_range(void* address, size_t bytes) {
  touch(address, bytes, Kind::load, HERE);
}
void __tsan_write_range(void* address, size_t bytes) {
  touch(address, bytes, Kind::store, HERE);
}
ATOMICS(32)
ATOMICS(64)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
