// SPDX-License-Identifier: BSD-3-Clause
// .npz files without torch and without Python: checksums, headers, and that the same arrays give the same bytes.
#include <gossamer/kernels/npz.h>
#include <gtest/gtest.h>

#include <filesystem>

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

TEST(Npz, TheSameArraysGiveTheSameBytes) {
  const auto path = [](const char* name) {
    return (std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)).string();
  };
  const double numbers[] = {1, 2, 3};
  const std::vector<NpyArray> arrays = {{"x", "f8", {3}, {reinterpret_cast<const char*>(numbers), sizeof numbers}},
                                        {"none", "i4", {0}, {}}};
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
