// SPDX-License-Identifier: BSD-3-Clause
// .npz files without torch and without Python: checksums, headers, that the same arrays give the same bytes and come
// back, and that no damaged file reads past its end (the sanitizers watch).
#include <gossamer/kernels/npz_read.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace gossamer;

TEST(Npz, Checksum) {
  EXPECT_EQ(npz::crc("123456789"), 0xCBF43926U);  // the value every description of CRC-32 gives
  EXPECT_EQ(npz::crc("456789", npz::crc("123")), 0xCBF43926U);
  EXPECT_EQ(npz::crc(""), 0U);
}

TEST(Npz, Header) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {3, 4}, {1000000, 1000000, 1000000}}) {
    const std::string header = npz::npy_header({"a", "f8", shape, {}});
    EXPECT_EQ(header.size() % 64, 0U);
    EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
    EXPECT_EQ(header.back(), '\n');
  }
  EXPECT_NE(npz::npy_header({"a", "f8", {}, {}}).find("'shape': (), }"), std::string::npos);
  EXPECT_NE(npz::npy_header({"a", "f8", {3}, {}}).find("'descr': '<f8', 'fortran_order': False, 'shape': (3, ), }"),
            std::string::npos);
  EXPECT_NE(npz::npy_header({"a", "b1", {3, 4}, {}}).find("'descr': '|b1', 'fortran_order': False, 'shape': (3, 4), }"),
            std::string::npos);
}

namespace {

const double numbers[] = {1, 2, 3};
const std::vector<NpyArray> arrays = {{"x", "f8", {3}, {reinterpret_cast<const char*>(numbers), sizeof numbers}},
                                      {"none", "i4", {0}, {}},
                                      {"format", "S3", {}, "csr"}};

std::string path(const char* name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)).string();
}

}  // namespace

TEST(Npz, TheSameArraysGiveTheSameBytes) {
  std::string contents[2];
  for (int k = 0; k < 2; ++k) {
    const std::string file = path(k ? "b.npz" : "a.npz");
    write_npz(file, arrays);
    contents[k] = read_file(file).view();
    std::filesystem::remove(file);
  }
  EXPECT_EQ(contents[0], contents[1]);
  EXPECT_EQ(contents[0].substr(0, 4), "PK\x03\x04");
  EXPECT_NE(contents[0].find(std::string(reinterpret_cast<const char*>(numbers), sizeof numbers)), std::string::npos);
}

TEST(Npz, ArraysComeBack) {
  const std::string file = path("c.npz");
  for (const bool compressed : {false, true}) {
    write_npz(file, arrays, compressed);
    const auto found = read_npz(file);
    ASSERT_EQ(found.size(), arrays.size());
    for (size_t k = 0; k < arrays.size(); ++k) {
      EXPECT_EQ(found[k].name, arrays[k].name);
      EXPECT_EQ(found[k].type, arrays[k].type);
      EXPECT_EQ(found[k].shape, arrays[k].shape);
      EXPECT_EQ(found[k].data, arrays[k].data);
    }
  }
  std::filesystem::remove(file);
}

// Every byte of a file changed in turn, and every length it could be cut off at: an error or the arrays, nothing else.
TEST(Npz, DamagedFilesThrow) {
  const std::string file = path("d.npz");
  for (const bool compressed : {false, true}) {
    write_npz(file, arrays, compressed);
    const std::string good(read_file(file).view());
    int errors = 0;
    const auto attempt = [&](const std::string& contents) {
      std::ofstream(file, std::ios::binary) << contents;
      try {
        read_npz(file);
      } catch (const BadFile&) {
        ++errors;
      }
    };
    for (size_t k = 0; k < good.size(); ++k) {
      attempt(good.substr(0, k));
      EXPECT_EQ(errors, static_cast<int>(k) + 1) << "cut off at " << k;
    }
    for (size_t k = 0; k < good.size(); ++k)
      for (const char bits : {'\x01', '\x80', '\xff'}) {
        std::string bad = good;
        bad[k] = static_cast<char>(bad[k] ^ bits);
        attempt(bad);
      }
    EXPECT_GT(errors, static_cast<int>(2 * good.size()));
  }
  std::filesystem::remove(file);
}
