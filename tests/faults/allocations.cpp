// SPDX-License-Identifier: BSD-3-Clause
// An allocator that fails once, at the n-th allocation that the library makes: by operator new, malloc and its like
// called from libgossamer, and of a tensor's memory, called from c10. Preloaded before Python (test_allocations.py);
// glibc.
//
// It also counts the bytes of tensors that are alive, so that a leak of a failed call is seen.
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
}

namespace {

// The addresses of the code of a library.
struct Code {
  uintptr_t begin = 0, end = 0;
  bool has(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return at >= begin && at < end;
  }
};

Code library, tensors;
std::atomic<bool> armed = false;
std::atomic<int64_t> count = 0, fails_at = 0, live = 0;

int find(dl_phdr_info* info, size_t, void*) {
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const auto& part = info->dlpi_phdr[k];
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
    const Code code{info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
    if (std::strstr(info->dlpi_name, "libgossamer.so")) library = code;
    if (std::strstr(info->dlpi_name, "libc10.so")) tensors = code;
  }
  return 0;
}

// SparseMatrix::uncompress of Eigen 3.4, which is inlined into its SparseLU, does not look whether malloc gave
// anything. That is Eigen's to mend: what SparseLU allocates itself is not failed.
bool unchecked(const void* caller) {
  Dl_info about{};
  return dladdr(caller, &about) && about.dli_sname && std::strstr(about.dli_sname, "SparseLU");
}

// Whether this allocation is the one that fails.
bool fails(const void* caller) {
  if (!armed || !(library.has(caller) || tensors.has(caller)) || unchecked(caller)) return false;
  return ++count == fails_at;
}

void* counted(void* memory, const void* caller) {
  if (memory && tensors.has(caller)) live += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void* made(size_t size, size_t alignment, const void* caller) {
  // operator new of c10 makes small objects of torch's own, whose failure is torch's to bear.
  if (library.has(caller) && fails(caller)) throw std::bad_alloc();
  void* memory = alignment ? __libc_memalign(alignment, size) : __libc_malloc(size);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

#define CALLER __builtin_return_address(0)

// The n-th allocation from now on fails; none for 0.
extern "C" void fail_allocation(int64_t n) {
  dl_iterate_phdr(find, nullptr);
  count = 0;
  fails_at = n;
  armed = true;
}
// How many there were since.
extern "C" int64_t allocations_made() {
  armed = false;
  return count;
}
extern "C" int64_t tensor_bytes_alive() {
  return live;
}

extern "C" void* malloc(size_t size) {
  return fails(CALLER) ? (errno = ENOMEM, nullptr) : counted(__libc_malloc(size), CALLER);
}
extern "C" void* calloc(size_t n, size_t size) {
  return fails(CALLER) ? (errno = ENOMEM, nullptr) : counted(__libc_calloc(n, size), CALLER);
}
extern "C" void* realloc(void* old, size_t size) {
  return fails(CALLER) ? (errno = ENOMEM, nullptr) : __libc_realloc(old, size);
}
extern "C" int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = fails(CALLER) ? nullptr : counted(__libc_memalign(alignment, size), CALLER);
  return *memory ? 0 : ENOMEM;
}
extern "C" void free(void* memory) {
  if (memory && tensors.has(CALLER)) live -= static_cast<int64_t>(malloc_usable_size(memory));
  __libc_free(memory);
}

void* operator new(size_t size) {
  return made(size, 0, CALLER);
}
void* operator new[](size_t size) {
  return made(size, 0, CALLER);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return made(size, static_cast<size_t>(alignment), CALLER);
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return made(size, static_cast<size_t>(alignment), CALLER);
}
void operator delete(void* memory) noexcept {
  __libc_free(memory);
}
void operator delete[](void* memory) noexcept {
  __libc_free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  __libc_free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  __libc_free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  __libc_free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  __libc_free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  __libc_free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  __libc_free(memory);
}
