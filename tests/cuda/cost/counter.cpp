// SPDX-License-Identifier: BSD-3-Clause
// Puts the accesses of lanes together to requests of warps, and hands their sectors to the models of the caches.
#include "counter.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache.h"
#include "emulator/grid.h"

namespace cost {
namespace {

constexpr uint64_t memory_bytes = uint64_t{16} << 30;  // reserved, not taken

template <class T>
T* reserve(uint64_t count) {
  void* p =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(p);
}

// The device's memory, and what has been done to each of its sectors.
struct Memory {
  enum : uint8_t { read_first = 1, touched = 2, written = 4 };
  char* base = reserve<char>(memory_bytes);
  uint8_t* sectors = reserve<uint8_t>(memory_bytes / sector_bytes);
  uint64_t used = 0;

  bool has(const void* p) const { return p >= base && p < base + used; }
  uint64_t sector(const void* p) const {
    return static_cast<uint64_t>(static_cast<const char*>(p) - base) / sector_bytes;
  }
};

// What the lanes of a warp did at one place of the code, each for the same time.
struct Request {
  Kind kind;
  unsigned bytes, count = 0;
  const void* address[32];
};
struct Site {
  unsigned times[32] = {};         // how often each lane was here since the last collective
  const void* last[32] = {};       // and what it touched then
  std::vector<unsigned> requests;  // by that number, into those of the warp
};

// The requests of a warp since its last collective, in the order in which its first lane made them.
struct Pending {
  unsigned block = 0, met = 0;
  std::vector<Request> requests;
  std::unordered_map<const void*, Site> sites;
};

struct Counter {
  Memory memory;
  Totals totals;
  bool on = false;
  uint64_t launches = 0;
  // Multiprocessors, and bytes of caches; of a first level, what is left beside 32 KiB or more of shared memory.
  std::vector<Gpu> gpus;
  std::unordered_map<const emulator::Warp*, Pending> pending;

  void begin() {
    std::fill_n(memory.sectors, memory.used / sector_bytes + 1, uint8_t{0});
    totals = {};
    gpus.clear();
    gpus.emplace_back("A100", 108, 160 << 10, uint64_t{40} << 20);
    gpus.emplace_back("H100", 132, 224 << 10, uint64_t{50} << 20);
    emulator::stats = {};
    launches = 0;
    on = true;
  }
  void end() {
    finish();
    for (Gpu& gpu : gpus) gpu.flush();
    const uint64_t sectors = (memory.used + sector_bytes - 1) / sector_bytes;
    for (uint64_t s = 0; s < sectors; ++s) {
      totals.first_read += (memory.sectors[s] & Memory::read_first) != 0;
      totals.first_written += (memory.sectors[s] & Memory::written) != 0;
    }
    on = false;
  }
  void finish() {
    for (auto& [warp, of_warp] : pending) flush(of_warp);
    pending.clear();
  }

  void move(unsigned block, uint64_t sector, Kind kind) {
    uint8_t& seen = memory.sectors[sector];
    if (!seen && kind != Kind::store) seen |= Memory::read_first;
    seen |= Memory::touched;
    if (kind == Kind::store) seen |= Memory::written;
    ++totals.sectors;
    for (Gpu& gpu : gpus) gpu.access(block, sector, kind == Kind::store, kind == Kind::atomic);
  }
  void make(unsigned block, Request& request) {
    ++(request.kind == Kind::load ? totals.loads : request.kind == Kind::store ? totals.stores : totals.atomics);
    totals.lanes += request.count;
    std::sort(request.address, request.address + request.count);
    uint64_t next = 0;  // sectors below it are in this request already
    for (unsigned k = 0; k < request.count; ++k) {
      if (k && request.address[k] == request.address[k - 1]) continue;
      totals.bytes += request.bytes;
      const auto* first = static_cast<const char*>(request.address[k]);
      const uint64_t last = memory.sector(first + request.bytes - 1);
      for (uint64_t s = std::max(next, memory.sector(first)); s <= last; ++s) move(block, s, request.kind);
      next = std::max(next, last + 1);
    }
  }
  void flush(Pending& of_warp) {
    for (Request& request : of_warp.requests) make(of_warp.block, request);
    of_warp.requests.clear();
    for (auto& [site, s] : of_warp.sites) std::fill_n(s.times, 32, 0u), s.requests.clear();
  }

  void touch(const void* address, size_t bytes, Kind kind, const void* site) {
    const emulator::Thread& lane = *emulator::running;
    if (launches != emulator::stats.launches) {
      finish();
      for (Gpu& gpu : gpus) gpu.next_launch();
      launches = emulator::stats.launches;
    }
    Pending& mine = pending[lane.warp];
    if (mine.met != lane.warp->met || mine.block != lane.at.block.x) {  // else still the same stretch of code
      flush(mine);
      mine.met = lane.warp->met;
      mine.block = lane.at.block.x;
    }
    Site& here = mine.sites[site];
    const void* before = std::exchange(here.last[lane.lane], address);
    // A lane that polls is counted once: how often it does is a matter of the schedule, which is not a GPU's.
    if (kind == Kind::atomic && here.times[lane.lane] && before == address) return;
    const unsigned time = here.times[lane.lane]++;
    if (time == here.requests.size()) {
      here.requests.push_back(static_cast<unsigned>(mine.requests.size()));
      mine.requests.push_back({kind, static_cast<unsigned>(bytes), 0, {}});
    }
    Request& request = mine.requests[here.requests[time]];
    request.address[request.count++] = address;
  }
};

Counter& counter() {
  static Counter the_only;
  return the_only;
}

bool is_shared(const void* address) {
  for (const emulator::Shared& array : emulator::running->block->shared)
    if (address >= array.bytes.get() && address < array.bytes.get() + array.size) return true;
  return false;
}

}  // namespace

void* allocate(size_t bytes) {
  Memory& memory = counter().memory;
  void* p = memory.base + memory.used;
  memory.used += (bytes + 255) / 256 * 256;
  if (memory.used > memory_bytes) throw std::bad_alloc();
  return p;
}

void reset() {
  Memory& memory = counter().memory;
  madvise(memory.base, memory.used, MADV_DONTNEED);
  madvise(memory.sectors, memory.used / sector_bytes + 1, MADV_DONTNEED);
  memory.used = 0;
}

void start() {
  counter().begin();
}

Totals stop() {
  counter().end();
  return counter().totals;
}

std::string report() {
  const Totals& t = counter().totals;
  std::string text;
  const auto add = [&](const std::string& name, uint64_t number) {
    text += (text.empty() ? "{\"" : ", \"") + name + "\": " + std::to_string(number);
  };
  add("launches", emulator::stats.launches), add("threads", emulator::stats.threads);
  add("shuffles", emulator::stats.shuffles), add("spins", emulator::stats.spins);
  add("loads", t.loads), add("stores", t.stores), add("atomics", t.atomics), add("lanes", t.lanes);
  add("bytes", t.bytes), add("sectors", t.sectors), add("shared", t.shared);
  add("compulsory", sector_bytes * (t.first_read + t.first_written));
  for (const Gpu& gpu : counter().gpus) {
    const std::string name = gpu.name;
    add(name + "_l2", sector_bytes * gpu.second_sectors), add(name + "_dram", sector_bytes * (gpu.read + gpu.written));
  }
  return text + "}";
}

void touch(const void* address, size_t bytes, Kind kind, const void* site) {
  Counter& count = counter();
  if (!count.on || !emulator::running) return;
  if (count.memory.has(address)) return count.touch(address, bytes, kind, site);
  if (is_shared(address)) ++count.totals.shared;
}

}  // namespace cost
