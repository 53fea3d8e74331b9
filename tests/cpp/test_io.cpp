// SPDX-License-Identifier: BSD-3-Clause
// MatrixMarket and .npz files from C++: round trips, and errors with the name and the line.
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

TEST(Io, Patterns) {
  const auto file = path("gossamer.mtx");
  const auto A = gs::poisson({3});
  gs::write_mtx(file, A.pattern());
  EXPECT_TRUE(gs::read_mtx(file).pattern() == A.pattern());
  EXPECT_EQ(gs::read_mtx(file).sum().item<double>(), 7);
  std::filesystem::remove(file);
}

TEST(Io, Npz) {
  const auto file = path("gossamer.npz");
  for (const auto type : {torch::kFloat64, torch::kFloat32, torch::kComplexDouble, torch::kInt64, torch::kBool})
    for (const bool compressed : {true, false}) {
      const auto A = gs::poisson({7, 8}).to(type).with_index_type(compressed ? torch::kInt64 : torch::kInt32);
      gs::save_npz(file.substr(0, file.size() - 4), A, compressed);  // .npz is added
      const auto B = gs::load_npz(file);
      EXPECT_EQ(B.repr(), A.repr());
      EXPECT_TRUE(B.pattern().equals(A.pattern()) && torch::equal(B.values(), A.values()));
    }
  std::filesystem::remove(file);
}

TEST(Io, NpzErrors) {
  const auto file = path("gossamer.npz");
  EXPECT_EQ(message([&] { gs::load_npz(file); }), "load_npz: " + file + ": No such file or directory");
  std::ofstream(file) << "%%MatrixMarket";
  EXPECT_EQ(message([&] { gs::load_npz(file); }), "load_npz: " + file + ": it is not a .npz file, or cut off");
  gs::write_npz(file, {{"data", torch::ones(3)}});
  EXPECT_EQ(message([&] { gs::load_npz(file); }),
            "load_npz: " + file + ": it has no array 'format'; is it a sparse matrix?");
  std::filesystem::remove(file);
  const auto A = gs::eye(2).with_values(torch::ones({2, 3}));
  EXPECT_EQ(message([&] { gs::save_npz(file, A); }), "save_npz: a file holds one matrix, but values has shape (2, 3)");
  EXPECT_EQ(message([&] { gs::save_npz(file, gs::eye(2, torch::kBFloat16)); }),
            "save_npz: NumPy has no bfloat16; save A.to(torch::kFloat32)");
}

TEST(Io, Errors) {
  const auto file = path("gossamer.mtx");
  std::ofstream(file) << "%%MatrixMarket matrix coordinate real general\n5 8 1\n1 9 2\n";
  EXPECT_EQ(message([&] { gs::read_mtx(file); }), file + ":3: column 9 is outside the 8 columns");
  std::filesystem::remove(file);
  EXPECT_EQ(message([&] { gs::read_mtx(file); }), "read_mtx: " + file + ": No such file or directory");
}
