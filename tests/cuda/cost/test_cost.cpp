// SPDX-License-Identifier: BSD-3-Clause
// The counter itself, on kernels whose cost can be counted by hand.
#include <gtest/gtest.h>

#include <string>

#include "cache.h"
#include "emulator/emulator.h"
#include "ops.h"
#include "toy_kernels.h"

namespace cost {
namespace {

template <class F>
Totals count(const F& f) {
  emulator::config = {0, 4};
  start();
  f();
  return stop();
}

// A number of the report.
uint64_t reported(const std::string& name) {
  const std::string text = report(), key = "\"" + name + "\": ";
  const size_t at = text.find(key);
  EXPECT_NE(at, std::string::npos) << name << " is not in " << text;
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + key.size()));
}

struct Cost : testing::Test {
  ~Cost() override { reset(); }
  const float* in = numbers<float>(1024);
  float* out = numbers<float>(32);
};

// 32 floats side by side lie in 4 sectors of 32 bytes; 8 floats apart, each has one of its own.
TEST_F(Cost, ARequestMovesTheSectorsItsLanesTouch) {
  for (const auto& [stride, sectors] : {std::pair{1, 4u}, {2, 8u}, {8, 32u}, {16, 32u}}) {
    const Totals t = count([&] { strided_copy(in, stride, out, 32); });
    EXPECT_EQ(t.loads, 1u);
    EXPECT_EQ(t.stores, 1u);
    EXPECT_EQ(t.lanes, 64u);
    EXPECT_EQ(t.bytes, 2u * 32 * 4);
    EXPECT_EQ(t.sectors, sectors + 4) << "stride " << stride;
    EXPECT_EQ(t.first_read, sectors);
    EXPECT_EQ(t.first_written, 4u);
    EXPECT_EQ(reported("A100_dram"), 32u * (sectors + 4));
    EXPECT_EQ(reported("H100_l2"), 32u * (sectors + 4));
  }
}

TEST_F(Cost, IdleLanesAreDivergence) {
  const Totals t = count([&] { strided_copy(in, 1, out, 5); });
  EXPECT_EQ(t.loads + t.stores, 2u);
  EXPECT_EQ(t.lanes, 10u);
  EXPECT_EQ(t.sectors, 2u);
}

TEST_F(Cost, OneAddressForAllLanesIsOneSector) {
  const Totals t = count([&] { broadcast(in, out); });
  EXPECT_EQ(t.loads, 2u);  // in[0], and out before it is written
  EXPECT_EQ(t.bytes, 4u + 2 * 32 * 4);
  EXPECT_EQ(t.sectors, 1u + 4 + 4);
  EXPECT_EQ(t.first_read, 5u);
  EXPECT_EQ(t.first_written, 4u);
}

// Time n through the loop is one request, of the lanes that are still in it, and counted anew after the warp has met.
TEST_F(Cost, LoopsOfDifferentLengthsAreMatchedByTurn) {
  const Totals t = count([&] { triangle(in, out); });
  EXPECT_EQ(t.loads, 2u * 32);
  EXPECT_EQ(t.lanes, 2u * (32 * 33 / 2) + 32);
  EXPECT_EQ(t.sectors, 2u * 32 + 4);
  EXPECT_EQ(
      out[31], 2 * [&] {
        float sum = 0;
        for (int k = 0; k < 32; ++k) sum += in[k];
        return sum;
      }());
  EXPECT_EQ(reported("A100_l2"), 32u * (4 + 4));  // what was read once is in the first level
}

TEST_F(Cost, SharedMemoryIsNotGlobal) {
  const Totals t = count([&] { through_shared(in, out); });
  EXPECT_EQ(t.loads + t.stores, 2u);
  EXPECT_EQ(t.shared, 64u);
}

TEST_F(Cost, PollsAreOneRequest) {
  int* flag = array<int>(1);
  *flag = 0;
  const Totals t = count([&] { handshake(flag, out); });
  EXPECT_EQ(t.atomics, 1u);
  EXPECT_EQ(t.stores, 2u);
  EXPECT_GT(reported("spins"), 0u);
}

// Each array once, in whole sectors: indptr, indices, values, X and Y.
TEST_F(Cost, SpmmOnADiagonal) {
  constexpr int64_t n = 4096;
  Pattern eye{n, n, {0}, {}};
  for (int32_t i = 0; i < n; ++i) eye.indices.push_back(i), eye.indptr.push_back(i + 1);
  Ops ops;
  add_products<float>(ops);
  for (const int64_t width : {1, 32}) {
    const Work work = ops["spmm"](eye, {width, 1});
    EXPECT_EQ(work.flops, 2.0 * n * static_cast<double>(width));
    const auto bytes = static_cast<uint64_t>((4 * n + 32) + 4 * n + 4 * n + 2 * 4 * n * width);
    EXPECT_EQ(reported("compulsory"), bytes);
    EXPECT_EQ(reported("A100_dram"), bytes);
    EXPECT_EQ(reported("launches"), 2u);  // the second one for pieces of long rows, of which there are none
    reset();
  }
}

TEST(CostOfCaches, TheLineUsedLongestAgoGoesFirst) {
  Cache cache(4 * line_bytes, 4);  // one set
  for (const uint64_t line : {0, 1, 2, 3}) EXPECT_TRUE(cache.touch(4 * line, false).in);
  EXPECT_FALSE(cache.touch(0, false).in);
  EXPECT_TRUE(cache.touch(1, false).in);   // another sector of the same line
  EXPECT_TRUE(cache.touch(16, false).in);  // line 4 takes the place of line 1
  EXPECT_FALSE(cache.touch(0, false).in);
  EXPECT_TRUE(cache.touch(4, false).in);
}

TEST(CostOfCaches, WhatWasWrittenIsWrittenBackOnce) {
  Cache cache(4 * line_bytes, 4);
  EXPECT_FALSE(cache.touch(0, true).in);  // not read first
  cache.touch(0, true), cache.touch(1, true);
  unsigned out = 0;
  for (uint64_t line = 1; line <= 4; ++line) out += cache.touch(4 * line, false).out;
  EXPECT_EQ(out, 2u);
  EXPECT_EQ(cache.flush(), 0u);
}

// A second pass over more than a cache holds reads it all again, over less nothing.
TEST(CostOfCaches, CapacityIsFelt) {
  for (const auto& [sectors, again] : {std::pair<uint64_t, bool>{1000, false}, {40000, true}}) {
    Gpu gpu("toy", 1, 4096, 64 * 1024);
    for (int pass = 0; pass < 2; ++pass)
      for (uint64_t s = 0; s < sectors; ++s) gpu.access(0, s, false, false);
    EXPECT_EQ(gpu.read > sectors * 19 / 10, again);
    EXPECT_EQ(gpu.read == sectors, !again);
    EXPECT_EQ(gpu.second_sectors, 2 * sectors);  // the first level is too small for either
  }
}

}  // namespace
}  // namespace cost
