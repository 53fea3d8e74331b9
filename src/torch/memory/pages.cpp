// SPDX-License-Identifier: BSD-3-Clause
#include "memory/pages.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string_view>
#include <vector>

namespace gossamer {

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // the sanitizer watches the borders of what malloc gives
namespace {

constexpr size_t page = size_t{2} << 20;  // a huge one
constexpr size_t large = 2 * page;        // smaller blocks malloc keeps by itself

struct Block {
  void* data;
  size_t bytes;  // a multiple of `page`
};

size_t limit_of_this_machine() {
  if (const char* wanted = std::getenv("GOSSAMER_KEEP_PAGES"); wanted && std::string_view(wanted) == "0") return 0;
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 16;
}

// Fresh memory in huge pages; null if there is none. What the border costs is only an address, not memory.
void* map_pages(size_t bytes) {
  char* begin = static_cast<char*>(
      mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (begin == MAP_FAILED) return nullptr;
  const size_t before = (page - reinterpret_cast<uintptr_t>(begin) % page) % page;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, page - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

// What results have left, the newest last. It is never waited for: whoever finds it in use, as the child of a fork may
// find it for ever, maps and unmaps pages of its own.
class KeptPages {
 public:
  void* take(size_t bytes) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr;
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(), [&](const Block& b) { return b.bytes == bytes; });
    if (found == kept_.rend()) return nullptr;
    void* data = found->data;
    total_ -= bytes;
    kept_.erase(std::next(found).base());
    return data;
  }

  void give(Block block) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || block.bytes > limit_ || madvise(block.data, block.bytes, MADV_FREE) != 0) {
      munmap(block.data, block.bytes);
      return;
    }
    kept_.push_back(block);
    total_ += block.bytes;
    while (total_ > limit_) {
      munmap(kept_.front().data, kept_.front().bytes);
      total_ -= kept_.front().bytes;
      kept_.erase(kept_.begin());
    }
  }

 private:
  std::mutex mutex_;
  std::vector<Block> kept_;
  size_t total_ = 0;
  const size_t limit_ = limit_of_this_machine();
};

KeptPages& kept_pages() {
  static KeptPages* pages = new KeptPages;  // never destroyed: a tensor may outlive everything static
  return *pages;
}

void release(void* context) {
  const Block* block = static_cast<const Block*>(context);
  c10::reportMemoryUsageToProfiler(block->data, -static_cast<int64_t>(block->bytes), 0, 0, c10::kCPU);
  kept_pages().give(*block);
  delete block;
}

// Blocks of so many bytes, rounded up by at most an eighth, so that results of nearly one size follow each other.
size_t rounded(size_t bytes) {
  size_t step = page;
  while (step * 16 <= bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

class PagesAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    if (n < large || n > std::numeric_limits<size_t>::max() / 4) return c10::GetCPUAllocator()->allocate(n);
    const size_t bytes = rounded(n);
    void* data = kept_pages().take(bytes);
    if (!data) data = map_pages(bytes);
    if (!data) return c10::GetCPUAllocator()->allocate(n);  // which says in torch's words that there is no memory
    c10::reportMemoryUsageToProfiler(data, static_cast<int64_t>(bytes), 0, 0, c10::kCPU);
    return {data, new Block{data, bytes}, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // a context is a Block, not the data itself
  void copy_data(void* to, const void* from, size_t n) const override { std::memcpy(to, from, n); }
};

}  // namespace

at::Tensor empty_result(c10::SymIntArrayRef size, const at::TensorOptions& options) {
  static PagesAllocator* const pages = new PagesAllocator;
  const auto sizes = c10::asIntArrayRefSlowOpt(size);
  size_t bytes = options.dtype().itemsize();
  if (!options.device().is_cpu() || !sizes || at::globalContext().deterministicAlgorithms())  // which fills with NaN
    return at::empty_symint(size, options);
  for (const int64_t n : *sizes)
    if (n < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(n), &bytes)) return at::empty_symint(size, options);
  if (bytes < large) return at::empty_symint(size, options);
  return at::detail::empty_generic(*sizes, pages, c10::DispatchKeySet(c10::DispatchKey::CPU),
                                   c10::typeMetaToScalarType(options.dtype()), std::nullopt);
}

#else

at::Tensor empty_result(c10::SymIntArrayRef size, const at::TensorOptions& options) {
  return at::empty_symint(size, options);
}

#endif

}  // namespace gossamer
