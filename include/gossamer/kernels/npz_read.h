// SPDX-License-Identifier: BSD-3-Clause
// The arrays of a .npz file, as NumPy and npz.h write it: stored or deflated, up to 4 GiB. Nothing in the file is
// trusted: every offset, length and checksum is compared with what is there, and what does not fit throws BadFile.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gossamer/kernels/deflate.h>
#include <gossamer/kernels/file.h>
#include <gossamer/kernels/npz.h>

namespace gossamer {

// As NpyArray, with its own data, in the byte order of this machine.
struct StoredArray {
  std::string name, type;
  std::vector<int64_t> shape;
  std::string data;
};

namespace npz {

// `count` bytes of a file from `at` on.
inline std::string_view piece(std::string_view file, uint64_t at, uint64_t count) {
  if (at > file.size() || count > file.size() - at) throw BadFile("it is cut off");
  return file.substr(at, count);
}

// A number of so many bytes, lowest first: what put() wrote.
inline uint64_t number(std::string_view file, uint64_t at, int bytes) {
  uint64_t result = 0;
  const std::string_view from = piece(file, at, static_cast<uint64_t>(bytes));
  for (int k = bytes; k-- > 0;) result = result << 8 | static_cast<unsigned char>(from[static_cast<size_t>(k)]);
  return result;
}

// What follows 'key': in the dictionary of a .npy header, without blanks before it.
inline std::string_view value_of(std::string_view header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string_view::npos) throw BadFile("an array has no " + key);
  header.remove_prefix(at + key.size() + 3);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

// "(2, 3)", "(5,)", "()".
inline std::vector<int64_t> shape_of(std::string_view text) {
  std::vector<int64_t> shape;
  if (!text.starts_with('(')) throw BadFile("the shape of an array is damaged");
  const char *at = text.data() + 1, *end = text.data() + text.size();
  while (true) {
    while (at < end && (*at == ' ' || *at == ',')) ++at;
    if (at < end && *at == ')') return shape;
    const auto [next, error] = std::from_chars(at, end, shape.emplace_back());
    if (error != std::errc() || shape.back() < 0) throw BadFile("the shape of an array is damaged");
    at = next;
  }
}

// The size of an element in bytes, and of the pieces of it that have a byte order; "O" and structured types have none.
struct ElementSize {
  uint64_t bytes = 0, ordered = 0;
};
inline ElementSize element_size(const std::string& name, const std::string& type) {
  uint64_t size = 0;
  const char* end = type.data() + type.size();
  const auto [stop, error] = std::from_chars(type.data() + std::min<size_t>(1, type.size()), end, size);
  if (error != std::errc() || stop != end || type[0] == 'V' || type[0] == 'O' || size > 4096)
    throw BadFile("its " + name + " is of type " + type.substr(0, 40) + ", which is not read");
  if (type[0] == 'U') return {4 * size, 4};
  return {size, type[0] == 'c' ? size / 2 : type[0] == 'S' ? 1 : size};
}

// One .npy file.
inline StoredArray npy(std::string name, std::string_view file) {
  if (!piece(file, 0, 8).starts_with("\x93NUMPY")) throw BadFile("its " + name + " is not an array of NumPy's");
  const int width = file[6] == 1 ? 2 : 4;  // version 1.0 counts the header in two bytes, later ones in four
  const uint64_t length = number(file, 8, width), begin = 8 + static_cast<uint64_t>(width);
  const std::string_view header = piece(file, begin, length);
  std::string_view descr = value_of(header, "descr");
  const size_t close = descr.find('\'', 1);
  if (!descr.starts_with('\'') || close == std::string_view::npos || close < 3)
    throw BadFile("its " + name + " is of a structured type, which is not read");
  const char order = descr[1];
  StoredArray array{std::move(name), std::string(descr.substr(2, close - 2)), shape_of(value_of(header, "shape")), {}};
  const bool columns_first = value_of(header, "fortran_order").starts_with("True");
  if (columns_first && array.shape.size() > 1) throw BadFile("its " + array.name + " is stored by columns");
  const ElementSize element = element_size(array.name, array.type);
  const std::string_view data = file.substr(begin + length);
  uint64_t bytes = element.bytes;
  for (const int64_t size : array.shape) {
    if (size > 0 && bytes > data.size() / static_cast<uint64_t>(size))
      throw BadFile("its " + array.name + " is cut off");
    bytes *= static_cast<uint64_t>(size);
  }
  array.data = piece(data, 0, bytes);
  const bool swapped = order == (std::endian::native == std::endian::little ? '>' : '<');
  for (uint64_t at = 0; swapped && element.ordered > 1 && at + element.ordered <= bytes; at += element.ordered)
    std::reverse(array.data.begin() + static_cast<int64_t>(at),
                 array.data.begin() + static_cast<int64_t>(at + element.ordered));
  return array;
}

// The bytes of one entry of the zip file's directory, which stands at `at`.
inline std::string entry_data(std::string_view file, uint64_t at) {
  const uint64_t flags = number(file, at + 8, 2), method = number(file, at + 10, 2), packed = number(file, at + 20, 4);
  const uint64_t size = number(file, at + 24, 4), local = number(file, at + 42, 4);
  if (flags & 1) throw BadFile("it is encrypted");
  if (method != 0 && method != 8) throw BadFile("an array is compressed in a way that is not read");
  if (std::max({packed, size, local}) == 0xFFFFFFFF) throw BadFile("more than 4 GiB are not read here");
  if (piece(file, local, 4) != "PK\x03\x04") throw BadFile("its directory names no array where it points");
  const uint64_t begin = local + 30 + number(file, local + 26, 2) + number(file, local + 28, 2);
  const std::string_view stored = piece(file, begin, packed);
  if (method == 0 && packed != size) throw BadFile("an array is cut off");
  std::string data = method == 0 ? std::string(stored) : inflated(stored, size);
  if (crc(data) != number(file, at + 16, 4)) throw BadFile("the checksum of an array is wrong");
  return data;
}

// Where the record of the directory begins: 22 bytes, then a comment of the length they end with.
inline uint64_t directory_record(std::string_view file) {
  const size_t found = file.rfind("PK\x05\x06");
  if (!file.starts_with("PK") || found == std::string_view::npos)
    throw BadFile(file.starts_with("\x93NUMPY") ? "it holds a single array, not a sparse matrix"
                                                : "it is not a .npz file, or cut off");
  piece(file, found + 22, number(file, found + 20, 2));
  return found;
}

}  // namespace npz

// The arrays of a .npz file that are asked for by name, or all of them. What they unpack to is bounded, also where many
// names share one place in the file; the others are not looked at.
inline std::vector<StoredArray> arrays_of(std::string_view file, const std::vector<std::string_view>& names,
                                          const MemoryBound& bound) {
  const uint64_t end = npz::directory_record(file), count = npz::number(file, end + 10, 2);
  uint64_t at = npz::number(file, end + 16, 4), taken = 0;
  if (count == 0xFFFF || at == 0xFFFFFFFF) throw BadFile("more than 4 GiB are not read here");
  std::vector<StoredArray> arrays;
  for (uint64_t k = 0; k < count; ++k) {
    if (npz::piece(file, at, 4) != "PK\x01\x02") throw BadFile("its directory is damaged");
    const uint64_t length = npz::number(file, at + 28, 2);
    std::string_view name = npz::piece(file, at + 46, length);
    const bool array = name.ends_with(".npy");
    if (array) name.remove_suffix(4);
    if (array && (names.empty() || std::find(names.begin(), names.end(), name) != names.end())) {
      const uint64_t size = npz::number(file, at + 24, 4);
      if (size > bound.bytes - taken) throw BadFile("its arrays are " + bound.text());
      taken += size;
      arrays.push_back(npz::npy(std::string(name), npz::entry_data(file, at)));
    }
    at += 46 + length + npz::number(file, at + 30, 2) + npz::number(file, at + 32, 2);
  }
  return arrays;
}

inline std::vector<StoredArray> read_npz(const std::string& path, const std::vector<std::string_view>& names = {},
                                         std::optional<int64_t> max_bytes = {}) {
  const Buffer contents = read_file(path, Serial{}, max_bytes);
  return arrays_of(contents.view(), names, MemoryBound::of(contents.size(), max_bytes));
}

}  // namespace gossamer
