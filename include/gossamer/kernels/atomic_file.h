// SPDX-License-Identifier: BSD-3-Clause
// A file that nobody ever sees half of. POSIX. What the system refuses is thrown as std::system_error.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <gossamer/kernels/file.h>

namespace gossamer {

// A file that appears whole or not at all: written beside its place under another name, flushed to the disk, renamed.
// Without a commit() the old file stays and the new one is removed. Gzipped if its name ends in .gz. An existing file
// keeps its mode; a symbolic link is followed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path) : path_(resolved(path)), temporary_(beside(path_)), file_(create()) {
    if (path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0) try {
        gzip_ = std::make_unique<Gzip>(file_.get(), "wb");
      } catch (...) {
        ::unlink(temporary_.c_str());
        throw;
      }
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() {
    if (!committed_) ::unlink(temporary_.c_str());
  }

  void write(std::string_view text) {
    if (gzip_) return gzip_->write(text);
    while (!text.empty()) {
      const ssize_t put = ::write(file_.get(), text.data(), std::min<size_t>(text.size(), 1 << 30));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) throw_errno();
      text.remove_prefix(static_cast<size_t>(put));
    }
  }

  void commit() {
    errno = 0;
    if (gzip_ && !gzip_->close()) throw_errno(errno ? errno : EIO);
    struct stat old{};
    const bool exists = ::stat(path_.c_str(), &old) == 0;
    if (exists && ::fchmod(file_.get(), old.st_mode & 07777) != 0) throw_errno();
    if (::fsync(file_.get()) != 0) throw_errno();
    file_.close();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_errno();
    committed_ = true;
    const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;  // the file is there; only a power cut could still undo the renaming
    ::fsync(folder);
    ::close(folder);
  }

 private:
  static std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
  }
  static std::string resolved(const std::string& path) {
    struct stat about{};
    if (::stat(path.c_str(), &about) != 0) return path;
    if (S_ISDIR(about.st_mode)) throw_errno(EISDIR);
    if (!S_ISREG(about.st_mode)) throw BadFile("is not a regular file");
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
    return real ? real.get() : path;
  }
  static std::string beside(const std::string& path) {
    static std::atomic<int64_t> count = 0;
    return folder_of(path) + ".gossamer-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".tmp";
  }
  int create() const { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }

  std::string path_, temporary_;
  Descriptor file_;
  std::unique_ptr<Gzip> gzip_;
  bool committed_ = false;
};

}  // namespace gossamer
