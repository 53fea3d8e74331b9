// SPDX-License-Identifier: BSD-3-Clause
// Deflate, as zip files hold it: without the header and the checksum that gzip puts around it. zlib does the work; as
// for gzip (file.h), it is looked for when it is needed, and neither its headers nor a link to it are needed to build.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <gossamer/kernels/file.h>

namespace gossamer {

// zlib's z_stream. Its layout is part of zlib's ABI 1; zlib compares the size we name with its own.
struct DeflateStream {
  const char* next_in = nullptr;
  unsigned avail_in = 0;
  unsigned long total_in = 0;
  char* next_out = nullptr;
  unsigned avail_out = 0;
  unsigned long total_out = 0;
  const char* message = nullptr;
  void* state = nullptr;
  void *allocate = nullptr, *release = nullptr, *opaque = nullptr;
  int data_type = 0;
  unsigned long checksum = 0, reserved = 0;
};

struct DeflateLibrary {
  using Stream = DeflateStream;
  int (*inflate_init)(Stream*, int bits, const char* version, int size) = nullptr;
  int (*inflate)(Stream*, int flush) = nullptr;
  int (*inflate_end)(Stream*) = nullptr;
  int (*deflate_init)(Stream*, int level, int method, int bits, int memory, int strategy, const char* version,
                      int size) = nullptr;
  int (*deflate)(Stream*, int flush) = nullptr;
  int (*deflate_end)(Stream*) = nullptr;

  static const DeflateLibrary& get() {
    static const DeflateLibrary found = [] {
      DeflateLibrary z;
      find_in_zlib(z.inflate_init, "inflateInit2_");
      find_in_zlib(z.inflate, "inflate");
      find_in_zlib(z.inflate_end, "inflateEnd");
      find_in_zlib(z.deflate_init, "deflateInit2_");
      find_in_zlib(z.deflate, "deflate");
      find_in_zlib(z.deflate_end, "deflateEnd");
      return z;
    }();
    const auto& z = found;
    if (!z.inflate_init || !z.inflate || !z.inflate_end || !z.deflate_init || !z.deflate || !z.deflate_end)
      throw BadFile(
          "compressed arrays want zlib, and libz.so.1 is not on this machine; without compression they do "
          "not");
    return found;
  }
};

namespace deflate_codes {
constexpr int ok = 0, stream_end = 1;                           // what zlib's functions return
constexpr int no_flush = 0, finish = 4;                         // what they are asked for
constexpr int raw = -15;                                        // the largest window, neither header nor checksum
constexpr int level = 6, method = 8, memory = 8, strategy = 0;  // zlib's defaults
constexpr size_t piece = size_t{1} << 30;                       // zlib counts what is at hand in 32 bits
}  // namespace deflate_codes

// The `size` bytes that were compressed.
inline std::string inflated(std::string_view packed, size_t size) {
  using namespace deflate_codes;
  const auto& z = DeflateLibrary::get();
  if (size / 1032 > packed.size()) throw BadFile("a compressed array claims to be larger than it can be");
  std::string out(size, '\0');
  DeflateStream s;
  if (z.inflate_init(&s, raw, "1.2.3", sizeof s) != ok) throw BadFile("zlib does not start");
  size_t in = 0, at = 0;
  int status = ok;
  while (status == ok) {
    const auto given = static_cast<unsigned>(std::min(piece, packed.size() - in));
    const auto room = static_cast<unsigned>(std::min(piece, size - at));
    s.next_in = packed.data() + in, s.avail_in = given;
    s.next_out = out.data() + at, s.avail_out = room;
    status = z.inflate(&s, no_flush);  // no longer `ok` if it could neither read nor write
    in += given - s.avail_in, at += room - s.avail_out;
  }
  z.inflate_end(&s);
  if (status != stream_end || at != size) throw BadFile("a compressed array is damaged");
  return out;
}

inline std::string deflated(std::string_view bytes) {
  using namespace deflate_codes;
  const auto& z = DeflateLibrary::get();
  std::string out(bytes.size() / 2 + 1024, '\0');
  DeflateStream s;
  if (z.deflate_init(&s, level, method, raw, memory, strategy, "1.2.3", sizeof s) != ok)
    throw BadFile("zlib does not start");
  size_t in = 0, at = 0;
  int status = ok;
  while (status == ok) {
    if (at == out.size()) out.resize(2 * out.size());
    const auto given = static_cast<unsigned>(std::min(piece, bytes.size() - in));
    const auto room = static_cast<unsigned>(std::min(piece, out.size() - at));
    s.next_in = bytes.data() + in, s.avail_in = given;
    s.next_out = out.data() + at, s.avail_out = room;
    status = z.deflate(&s, in + given == bytes.size() ? finish : no_flush);
    in += given - s.avail_in, at += room - s.avail_out;
  }
  z.deflate_end(&s);
  if (status != stream_end) throw BadFile("zlib could not compress an array");
  out.resize(at);
  return out;
}

}  // namespace gossamer
