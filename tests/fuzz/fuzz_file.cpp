// SPDX-License-Identifier: BSD-3-Clause
// Files as they lie on a disk, gzipped or not: read whole and within the bound, or refused.
#include <gossamer/kernels/file.h>

#include <cstdlib>

using namespace gossamer;

extern const std::vector<std::string> fuzz_words = {std::string("\x1f\x8b\x08"),
                                                    std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10),
                                                    std::string(8, '\0'),
                                                    "\xff\xff",
                                                    "%%MatrixMarket",
                                                    "\n"};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  constexpr int64_t most_bytes = 1 << 16;
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  try {
    const Buffer contents = read_file(path, Serial{}, most_bytes);
    const std::string_view given(reinterpret_cast<const char*>(data), size);
    if (contents.size() > most_bytes || *(contents.view().data() + contents.size()) != '\n') std::abort();
    if (!given.starts_with("\x1f\x8b") && contents.view() != given) std::abort();
  } catch (const BadFile&) {
  }
  return 0;
}
