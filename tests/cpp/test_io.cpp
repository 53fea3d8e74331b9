// SPDX-License-Identifier: BSD-3-Clause
// MatrixMarket files from C++: round trips, and errors with the name and the line.
#include <gossamer/gossamer.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "message.h"

namespace gs = gossamer;

namespace {

std::string path(const char* name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)).string();
}

}  // namespace

TEST(Io, RoundTrip) {
  const auto A = gs::poisson({7, 8}, torch::kFloat64);
  for (const char* name : {"gossamer.mtx", "gossamer.mtx.gz"}) {
    const auto file = path(name);
    gs::write_mtx(file, A, "a comment", "symmetric");
    const auto B = gs::read_mtx(file);
    EXPECT_TRUE(torch::equal(B.pattern().indices(), A.pattern().indices()));
    EXPECT_TRUE(torch::equal(B.to_dense(), A.to_dense()));
    EXPECT_EQ(gs::read_mtx(file, torch::kFloat32).dtype(), torch::kFloat32);
    std::filesystem::remove(file);
  }
}

TEST(Io, Arrays) {
  const auto file = path("gossamer.mtx");
  const auto x = torch::randn({5, 2}, torch::kFloat64);
  gs::write_mtx(file, x);
  EXPECT_TRUE(torch::equal(gs::read_mtx_array(file), x));
  EXPECT_EQ(message([&] { gs::read_mtx(file); }), file + " is an array file, a dense matrix: read_mtx_array reads it");
  std::filesystem::remove(file);
}

TEST(Io, Errors) {
  const auto file = path("gossamer.mtx");
  std::ofstream(file) << "%%MatrixMarket matrix coordinate real general\n5 8 1\n1 9 2\n";
  EXPECT_EQ(message([&] { gs::read_mtx(file); }), file + ":3: column 9 is outside the 8 columns");
  std::filesystem::remove(file);
  EXPECT_EQ(message([&] { gs::read_mtx(file); }), "read_mtx: " + file + ": No such file or directory");
}
