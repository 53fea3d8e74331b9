// SPDX-License-Identifier: BSD-3-Clause
// NumPy's .npz: arrays as .npy files in a zip file, compressed or not. numpy.load reads it. The same arrays give the
// same bytes: no clock is asked. npz_read.h is the way back.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gossamer/kernels/atomic_file.h>
#include <gossamer/kernels/deflate.h>

namespace gossamer {

// type: NumPy's code of kind and size, such as "f8", "i4", "b1", or "S3" for three letters. data: in row-major order.
struct NpyArray {
  std::string name, type;
  std::vector<int64_t> shape;
  std::string_view data;
};

namespace npz {

// The checksum of zip files, CRC-32.
inline uint32_t crc(std::string_view bytes, uint32_t start = 0) {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t n = 0; n < 256; ++n) {
      uint32_t c = n;
      for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xEDB88320U ^ (c >> 1) : c >> 1;
      t[n] = c;
    }
    return t;
  }();
  uint32_t c = ~start;
  for (const char byte : bytes) c = table[(c ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (c >> 8);
  return ~c;
}

// The low bytes of a number, lowest first.
inline void put(std::string& out, uint64_t number, int bytes) {
  for (int k = 0; k < bytes; ++k) out.push_back(static_cast<char>(number >> (8 * k) & 0xFF));
}

// What stands before the data of a .npy file, version 1.0: padded so that the data begins at a multiple of 64.
inline std::string npy_header(const NpyArray& a) {
  const bool bytes = a.type.ends_with('1') || a.type.starts_with('S');  // which have no order
  const char order = bytes ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  std::string text = std::string("{'descr': '") + order + a.type + "', 'fortran_order': False, 'shape': (";
  for (const int64_t size : a.shape) text += std::to_string(size) + ", ";
  if (a.shape.size() > 1) text.resize(text.size() - 2);
  text += "), }";
  constexpr size_t before = 10;
  text.append((64 - (before + text.size() + 1) % 64) % 64, ' ').push_back('\n');
  std::string header = "\x93NUMPY\x01";
  header.push_back('\0');
  put(header, text.size(), 2);
  return header + text;
}

// The fields that a local header and the directory share.
inline std::string entry(const std::string& name, uint32_t checksum, uint64_t size, uint64_t packed, bool compressed) {
  std::string out;
  const bool letters = std::all_of(name.begin(), name.end(), [](char c) { return (c & 0x80) == 0; });
  put(out, 20, 2);                   // the version of zip that is needed
  put(out, letters ? 0 : 0x800, 2);  // whether the name is UTF-8; without the flag it is of an old code page
  put(out, compressed ? 8 : 0, 2);   // deflated, or stored
  put(out, 0, 2);                    // midnight of
  put(out, 0x0021, 2);               // 1980-01-01
  put(out, checksum, 4);
  put(out, packed, 4);
  put(out, size, 4);
  put(out, name.size(), 2);
  put(out, 0, 2);  // nothing extra
  return out;
}

}  // namespace npz

// The file appears whole or not at all.
inline void write_npz(const std::string& path, const std::vector<NpyArray>& arrays, bool compressed = false) {
  constexpr uint64_t limit = 0xFFFFFFFF;
  if (arrays.size() >= 0xFFFF) throw BadFile("too many arrays for one .npz file");
  AtomicFile file(path);
  std::string directory;
  uint64_t at = 0;
  for (const NpyArray& a : arrays) {
    const std::string name = a.name + ".npy", header = npz::npy_header(a);
    const uint64_t size = header.size() + a.data.size();
    if (size >= limit || at + size + 2 * name.size() + 128 >= limit)
      throw BadFile("more than 4 GiB do not fit a .npz file of this kind");
    const std::string packed = compressed ? deflated(header + std::string(a.data)) : std::string();
    const uint64_t length = compressed ? packed.size() : size;
    const std::string fields = npz::entry(name, npz::crc(a.data, npz::crc(header)), size, length, compressed);
    const std::string local = "PK\x03\x04" + fields + name;
    file.write(local);
    file.write(compressed ? packed : header);
    if (!compressed) file.write(a.data);
    directory += "PK\x01\x02";
    npz::put(directory, 20, 2);
    directory += fields;
    directory.append(10, '\0');  // no comment, first disk, no attributes
    npz::put(directory, at, 4);
    directory += name;
    at += local.size() + length;
  }
  std::string end = "PK\x05\x06";
  npz::put(end, 0, 4);
  npz::put(end, arrays.size(), 2);
  npz::put(end, arrays.size(), 2);
  npz::put(end, directory.size(), 4);
  npz::put(end, at, 4);
  npz::put(end, 0, 2);
  file.write(directory);
  file.write(end);
  file.commit();
}

}  // namespace gossamer
