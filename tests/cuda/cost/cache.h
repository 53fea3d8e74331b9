// SPDX-License-Identifier: BSD-3-Clause
// Models of a GPU's caches: lines of 128 bytes, filled by sectors of 32, the line used longest ago goes first.
#pragma once
#include <cstdint>
#include <vector>

namespace cost {

inline constexpr uint64_t sector_bytes = 32, line_bytes = 128;

// What one access moved to or from what lies behind the cache.
struct Moved {
  bool in = false;   // the sector was missing and had to be read
  unsigned out = 0;  // sectors written back, of the line that made way
};

class Cache {
 public:
  Cache(uint64_t bytes, unsigned ways) : ways_(ways), sets_(bytes / line_bytes / ways), lines_(sets_ * ways) {}

  // A sector is asked for by its number, address / 32. A written sector is not read first: GPUs keep a mask of bytes.
  Moved touch(uint64_t sector, bool write) {
    const uint64_t tag = sector / 4 + 1;  // 0 is a line that holds nothing
    const auto bit = static_cast<uint8_t>(1u << sector % 4);
    Line& line = find(tag);
    Moved moved;
    if (line.tag != tag) {
      moved.out = static_cast<unsigned>(__builtin_popcount(line.dirty));
      line = {tag, 0, 0, 0};
    }
    line.used = ++clock_;
    moved.in = !write && !(line.valid & bit);
    line.valid |= bit;
    if (write) line.dirty |= bit;
    return moved;
  }
  // Writes everything back; returns how many sectors that were.
  uint64_t flush() {
    uint64_t sectors = 0;
    for (Line& line : lines_) sectors += static_cast<uint64_t>(__builtin_popcount(line.dirty)), line = {};
    return sectors;
  }

 private:
  struct Line {
    uint64_t tag = 0, used = 0;
    uint8_t valid = 0, dirty = 0;
  };
  Line& find(uint64_t tag) {
    // Consecutive lines fall into sets that look random, as on a GPU, whose hash is not published.
    Line* set = &lines_[(tag * 0x9e3779b97f4a7c15u >> 20) % sets_ * ways_];
    Line* oldest = set;
    for (Line* line = set; line != set + ways_; ++line) {
      if (line->tag == tag) return *line;
      if (line->used < oldest->used) oldest = line;
    }
    return *oldest;
  }

  unsigned ways_;
  uint64_t sets_, clock_ = 0;
  std::vector<Line> lines_;
};

// A GPU's memory: a first-level cache for each multiprocessor, which blocks take in turn, and a second level for all.
class Gpu {
 public:
  const char* name;

  Gpu(const char* called, unsigned multiprocessors, uint64_t first, uint64_t second)
      : name(called), first_(multiprocessors, Cache(first, 4)), second_(second, 16) {}

  // First levels hold what was read; writes and atomics go through to the second one.
  void access(unsigned block, uint64_t sector, bool write, bool past_first) {
    if (!write && !past_first && !first_[block % first_.size()].touch(sector, false).in) return;
    ++second_sectors;
    const Moved moved = second_.touch(sector, write);
    read += moved.in;
    written += moved.out;
  }
  void next_launch() {  // first levels forget, the second one does not
    for (Cache& cache : first_) cache.flush();
  }
  void flush() { written += second_.flush(), next_launch(); }

  uint64_t second_sectors = 0, read = 0, written = 0;  // asked of the second level; from and to memory

 private:
  std::vector<Cache> first_;
  Cache second_;
};

}  // namespace cost
