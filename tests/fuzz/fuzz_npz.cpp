// SPDX-License-Identifier: BSD-3-Clause
// Zip files of NumPy's arrays: refused, or read within the bound. Most changes break a checksum, behind which the
// reader would hardly be seen: where the reader finds the bytes of an array, their checksum is put right first. An
// input that is no zip file is read as a single .npy.
#include <gossamer/kernels/npz_read.h>

#include <cstdlib>

using namespace gossamer;

extern const std::vector<std::string> fuzz_words = {std::string("PK\x03\x04"),
                                                    std::string("PK\x01\x02"),
                                                    std::string("PK\x05\x06"),
                                                    "\x93NUMPY",
                                                    std::string("\x01\0", 2),
                                                    std::string("\x02\0", 2),
                                                    "{'descr': ",
                                                    "'<f8'",
                                                    "'>f8'",
                                                    "'|b1'",
                                                    "'<U3'",
                                                    "'|S3'",
                                                    "'>c16'",
                                                    "'|O'",
                                                    "'<i4'",
                                                    "'|V8'",
                                                    ", 'fortran_order': ",
                                                    "True",
                                                    "False",
                                                    ", 'shape': ",
                                                    "(3,)",
                                                    "(2, 3)",
                                                    "()",
                                                    "(",
                                                    ")",
                                                    ",",
                                                    ", }",
                                                    "\n",
                                                    "-1",
                                                    "data.npy",
                                                    "indptr.npy",
                                                    "shape.npy",
                                                    "format.npy",
                                                    std::string(8, '\0'),
                                                    std::string("\x08\0", 2)};

namespace {

constexpr int64_t most_bytes = 1 << 20;

// Writes the checksum that the bytes of each array of the directory have, as far as they can be found.
void repair(std::string& file) try {
  const uint64_t end = npz::directory_record(file), count = std::min<uint64_t>(npz::number(file, end + 10, 2), 16);
  uint64_t at = npz::number(file, end + 16, 4);
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t local = npz::number(file, at + 42, 4), size = npz::number(file, at + 24, 4);
    const uint64_t begin = local + 30 + npz::number(file, local + 26, 2) + npz::number(file, local + 28, 2);
    const std::string_view stored = npz::piece(file, begin, npz::number(file, at + 20, 4));
    const bool packed = npz::number(file, at + 10, 2) == 8 && size <= most_bytes;
    const uint32_t sum = packed ? npz::crc(inflated(stored, size)) : npz::crc(stored);
    for (size_t byte = 0; byte < 4; ++byte) file[at + 16 + byte] = static_cast<char>(sum >> (8 * byte));
    at += 46 + npz::number(file, at + 28, 2) + npz::number(file, at + 30, 2) + npz::number(file, at + 32, 2);
  }
} catch (const BadFile&) {  // the reader says so, too
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size % 4) repair(file);
  const std::vector<char> exactly(file.begin(), file.end());
  const std::string_view view(exactly.data(), exactly.size());
  try {
    const std::vector<std::string_view> wanted =
        size % 2 ? std::vector<std::string_view>{} : std::vector<std::string_view>{"data", "indptr", "shape"};
    std::vector<StoredArray> arrays;
    if (view.starts_with("PK"))
      arrays = arrays_of(view, wanted, MemoryBound::of(size, most_bytes));
    else
      arrays.push_back(npz::npy("array", view));
    uint64_t bytes = 0;
    for (const auto& array : arrays) {
      uint64_t entries = 1;
      for (const int64_t extent : array.shape) entries *= static_cast<uint64_t>(extent);
      if (entries * npz::element_size(array.name, array.type).bytes != array.data.size()) std::abort();
      bytes += array.data.size();
    }
    if (bytes > most_bytes) std::abort();
  } catch (const BadFile&) {
  }
  return 0;
}
