// SPDX-License-Identifier: BSD-3-Clause
// Whole files, read at once, gzipped or not. POSIX. atomic_file.h is the way back.
// What the system refuses is thrown as std::system_error, what is wrong with the contents as BadFile.
//
// zlib is looked for when a gzipped file is met: neither its headers nor a link to it are needed to build.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gossamer/kernels/exec.h>

namespace gossamer {

struct BadFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void throw_errno(int error = errno) {
  throw std::system_error(error, std::generic_category());
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {
    if (fd < 0) throw_errno();
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) throw_errno();
  }

 private:
  int fd_;
};

// A function of zlib, which is looked for once, when it is first needed; null where it is not on this machine.
template <class F>
void find_in_zlib(F& f, const char* name) {
  static void* const library = [] {
    void* found = nullptr;
    for (const char* file : {"libz.so.1", "libz.so", "libz.dylib"})
      if (!found) found = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return found;
  }();
  f = library ? reinterpret_cast<F>(::dlsym(library, name)) : nullptr;
}

// The few functions of zlib we call; they take care of headers, checksums and files of several members.
struct Zlib {
  using File = void*;
  File (*open)(int, const char*) = nullptr;
  int (*read)(File, void*, unsigned) = nullptr;
  int (*write)(File, const void*, unsigned) = nullptr;
  int (*close)(File) = nullptr;

  static const Zlib& get() {
    static const Zlib found = [] {
      Zlib z;
      find_in_zlib(z.open, "gzdopen");
      find_in_zlib(z.read, "gzread");
      find_in_zlib(z.write, "gzwrite");
      find_in_zlib(z.close, "gzclose");
      return z;
    }();
    if (!found.open || !found.read || !found.write || !found.close)
      throw BadFile("gzip wants zlib, and libz.so.1 is not on this machine");
    return found;
  }
};

// Asks for large pages behind a large, fresh piece of memory: touching it first is then several times cheaper. A hint.
inline void use_large_pages(void* data, size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t page = 4096;
  if (bytes < (size_t{1} << 22)) return;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)data, (void)bytes;
#endif
}

// Uninitialised memory with its size.
class Buffer {
 public:
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    void* larger = std::realloc(data_.get(), capacity);
    if (!larger) throw_errno(ENOMEM);
    (void)data_.release();
    data_.reset(static_cast<char*>(larger));
    capacity_ = capacity;
    use_large_pages(larger, capacity);
  }
  char* end() { return data_.get() + size_; }
  void grow(size_t n) { size_ += n; }
  size_t size() const { return size_; }
  size_t room() const { return capacity_ - size_; }
  std::string_view view() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0, capacity_ = 0;
};

// A gzipped file through zlib, from the descriptor's position; takes a copy of the descriptor.
class Gzip {
 public:
  Gzip(int fd, const char* mode) : z_(Zlib::get()) {
    const int copy = ::dup(fd);
    if (copy < 0) throw_errno();
    file_ = z_.open(copy, mode);
    if (!file_) {
      ::close(copy);
      throw_errno(ENOMEM);
    }
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() {
    if (file_) z_.close(file_);
  }

  size_t read(char* to, size_t room) {
    const int got = z_.read(file_, to, static_cast<unsigned>(std::min<size_t>(room, 1 << 30)));
    if (got < 0) throw BadFile("the gzipped data is damaged");
    return static_cast<size_t>(got);
  }
  void write(std::string_view text) {
    while (!text.empty()) {
      errno = 0;
      const int put = z_.write(file_, text.data(), static_cast<unsigned>(std::min<size_t>(text.size(), 1 << 30)));
      if (put <= 0) throw_errno(errno ? errno : EIO);
      text.remove_prefix(static_cast<size_t>(put));
    }
  }
  bool close() { return z_.close(std::exchange(file_, nullptr)) == 0; }  // false: cut off, or not written

 private:
  const Zlib& z_;
  Zlib::File file_ = nullptr;
};

// Reads a file of about `size` bytes in pieces, by all threads: copying from the system's memory is most of reading. If
// the file has become shorter meanwhile, what stands before the first gap.
template <Host E>
void read_pieces(const E& exec, int fd, size_t size, Buffer& text) {
  constexpr size_t piece = size_t{1} << 22;
  const auto pieces = static_cast<int64_t>((size + piece - 1) / piece);
  std::vector<size_t> got(static_cast<size_t>(pieces));
  std::atomic<int> error = 0;
  exec.parallel_for(pieces, [&](int64_t k) {
    const size_t begin = static_cast<size_t>(k) * piece, want = std::min(piece, size - begin);
    while (got[k] < want) {
      const ssize_t n = ::pread(fd, text.end() + begin + got[k], want - got[k], static_cast<off_t>(begin + got[k]));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) error = errno;
      if (n <= 0) return;
      got[k] += static_cast<size_t>(n);
    }
  });
  if (error) throw_errno(error);
  for (const size_t n : got) {
    text.grow(n);
    if (n < piece) break;
  }
  if (::lseek(fd, static_cast<off_t>(text.size()), SEEK_SET) < 0) throw_errno();
}

// How much memory a file may ask for is bounded by what it holds: a few bytes can be gzip's word for a terabyte, or the
// size line of a matrix with 10¹² rows. The bound is 64 times its size, and a gibibyte for small files; `max_bytes`,
// the caller's, takes its place.
struct MemoryBound {
  uint64_t bytes = 0;
  static MemoryBound of(uint64_t size, std::optional<int64_t> max_bytes) {
    if (max_bytes) return {static_cast<uint64_t>(std::max<int64_t>(*max_bytes, 0))};
    return {std::max(uint64_t{1} << 30, size > UINT64_MAX / 64 ? UINT64_MAX : 64 * size)};
  }
  // For messages, after what is too much.
  std::string text() const {
    return "more than the " + std::to_string(bytes) + " bytes that a file of its size may take; max_bytes raises this";
  }
};

// The contents of a regular file, unzipped if they begin as gzip's do, whatever its name. A line end follows the
// text, outside its size, so that no line is without one.
template <Host E = Serial>
Buffer read_file(const std::string& path, const E& exec = {}, std::optional<int64_t> max_bytes = {}) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) throw_errno();
  if (S_ISDIR(about.st_mode)) throw_errno(EISDIR);
  if (!S_ISREG(about.st_mode)) throw BadFile("is not a regular file");  // a pipe might never end
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  unsigned char magic[2] = {};
  const bool zipped = ::pread(file.get(), magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  std::unique_ptr<Gzip> gzip = zipped ? std::make_unique<Gzip>(file.get(), "rb") : nullptr;
  const auto size = static_cast<uint64_t>(about.st_size);
  const auto bound = MemoryBound::of(size, max_bytes);
  if (!zipped && size > bound.bytes) throw BadFile("it is " + std::to_string(size) + " bytes, " + bound.text());
  Buffer text;
  text.reserve(zipped ? std::min(4 * size, bound.bytes) + 1 : size + 1);  // one more, to see the end
  if (!zipped) read_pieces(exec, file.get(), size, text);
  for (;;) {  // what is zipped, or has been added since
    if (text.size() > bound.bytes) throw BadFile("unzipped it is " + bound.text());
    if (text.room() == 0) text.reserve(std::min<uint64_t>(2 * text.size(), bound.bytes + 1));
    const ssize_t got = gzip ? static_cast<ssize_t>(gzip->read(text.end(), text.room()))
                             : ::read(file.get(), text.end(), std::min<size_t>(text.room(), 1 << 30));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno();
    if (got == 0) break;
    text.grow(static_cast<size_t>(got));
  }
  if (gzip && !gzip->close()) throw BadFile("the gzipped data is cut off");
  if (text.room() == 0) text.reserve(text.size() + 1);
  *text.end() = '\n';
  return text;
}

}  // namespace gossamer
