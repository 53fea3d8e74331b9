// SPDX-License-Identifier: BSD-3-Clause
// The emulator itself: built-ins do what CUDA says, and planted bugs are found and named. Races and overruns are the
// sanitizers' to find: see planted/.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"
#include "emulator/sanitizer.h"

namespace gossamer::test {
namespace {

using device::launch;

const uint64_t seeds = emulator::sanitizer::has_fibers() ? 2 : 25;

// Runs f under several schedules.
template <class F>
void for_each_schedule(const F& f) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    emulator::config = {seed, static_cast<unsigned>(1 + seed % 5)};
    f();
  }
}

template <class... P, class... A>
void expect_found(const std::string& part, void (*kernel)(P...), dim3 grid, dim3 block, A... args) {
  for_each_schedule([&] {
    try {
      launch(Cuda{}, kernel, grid, block, args...);
      ADD_FAILURE() << "not found: " << part;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << "found something else: " << error.what();
    }
  });
}

// ---- built-ins ------------------------------------------------------------------------------------------------------

__global__ void coordinates(int* seen) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
            width = static_cast<int>(gridDim.x * blockDim.x);
  atomicAdd(&seen[static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) * width + x], 1);
}
TEST(Emulator, RunsEveryThreadOnce) {
  for_each_schedule([] {
    std::vector<int> seen(6 * 10, 0);
    launch(Cuda{}, coordinates, dim3(2, 5), dim3(3, 2), seen.data());
    EXPECT_EQ(seen, std::vector<int>(60, 1));
  });
}

__global__ void lane_exchange(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int* mine = out + lane * 8;
  mine[0] = __shfl_sync(~0u, lane, 3);
  mine[1] = __shfl_sync(~0u, lane, 5, 8);
  mine[2] = __shfl_up_sync(~0u, lane, 2, 8);
  mine[3] = __shfl_down_sync(~0u, lane, 3, 16);
  mine[4] = __shfl_xor_sync(~0u, lane, 8);
  mine[5] = static_cast<int>(__ballot_sync(~0u, lane % 3 == 0) & 0xff);
  mine[6] = static_cast<int>(__match_any_sync(~0u, lane / 4) >> (lane & ~3));
  mine[7] = __all_sync(~0u, lane < 32) * 2 + __any_sync(~0u, lane == 40);
}
TEST(Emulator, LanesExchangeAsTheGuideSays) {
  for_each_schedule([] {
    std::vector<int> out(32 * 8);
    launch(Cuda{}, lane_exchange, 1, 32, out.data());
    for (int k = 0; k < 32; ++k) {
      const int up = k % 8 < 2 ? k : k - 2, down = k % 16 + 3 > 15 ? k : k + 3;
      const std::vector<int> mine(out.begin() + k * 8, out.begin() + k * 8 + 8);
      EXPECT_EQ(mine, (std::vector<int>{3, k / 8 * 8 + 5, up, down, k ^ 8, 0x49, 0xf, 2})) << "lane " << k;
    }
  });
}

__global__ void votes(int* out) {
  const int n = __syncthreads_count(threadIdx.x % 5 == 0);
  const int any = __syncthreads_or(threadIdx.x == 7), all = __syncthreads_and(threadIdx.x != 7);
  if (threadIdx.x == 0) out[0] = n, out[1] = any, out[2] = all;
}
TEST(Emulator, BarriersCountVotes) {
  std::vector<int> out(3);
  launch(Cuda{}, votes, 1, 50, out.data());
  EXPECT_EQ(out, (std::vector<int>{10, 1, 0}));
}

__global__ void atomics(int* i, double* d) {
  atomicAdd(&i[0], 1);
  atomicMax(&i[1], static_cast<int>(threadIdx.x));
  atomicMin(&i[2], static_cast<int>(threadIdx.x));
  atomicOr(&i[3], 1 << threadIdx.x % 8);
  if (atomicCAS(&i[4], 0, 1) == 0) atomicExch(&i[5], 1 + static_cast<int>(threadIdx.x));
  atomicAdd(d, 0.5);
}
TEST(Emulator, AtomicsLoseNothing) {
  for_each_schedule([] {
    std::vector<int> i{0, -1, 99, 0, 0, 0};
    double d = 0;
    launch(Cuda{}, atomics, 3, 40, i.data(), &d);
    EXPECT_EQ((std::vector<int>(i.begin(), i.begin() + 5)), (std::vector<int>{120, 39, 0, 0xff, 1}));
    EXPECT_GT(i[5], 0);
    EXPECT_EQ(d, 60.0);
  });
}

TEST(Emulator, CountsBits) {
  EXPECT_EQ(__popc(0xf0f0u), 8);
  EXPECT_EQ(__ffs(0x10), 5);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(min(int64_t{3}, int64_t{2}), 2);
  EXPECT_EQ(max(3, 2), 3);
}

__global__ void reverse_in_block(const double* in, double* out) {
  GOSSAMER_SHARED(double, held, 64);
  held[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = held[63 - threadIdx.x];
}
TEST(Emulator, SharedArraysBelongToABlock) {
  std::vector<double> in(192), out(192);
  for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<double>(k);
  for_each_schedule([&] {
    launch(Cuda{}, reverse_in_block, 3, 64, in.data(), out.data());
    for (size_t k = 0; k < in.size(); ++k) EXPECT_EQ(out[k], in[k / 64 * 64 + 63 - k % 64]);
  });
}

__global__ void waits_for_the_next(int* done) {  // thread i waits for thread i + 1, the last for nobody
  if (threadIdx.x + 1 < blockDim.x)
    while (!device::load_acquire(&done[threadIdx.x + 1])) device::spin_pause();
  device::store_release(&done[threadIdx.x], 1);
}
TEST(Emulator, PollingThreadsMakeProgress) {
  for_each_schedule([] {
    std::vector<int> done(64, 0);
    launch(Cuda{}, waits_for_the_next, 1, 64, done.data());
    EXPECT_EQ(std::count(done.begin(), done.end(), 1), 64);
  });
}

__global__ void ticket(int* next, int* order) {
  order[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x);
}
TEST(Emulator, SeedsChangeTheOrderAndRepeatIt) {
  const auto order = [](uint64_t seed) {
    std::vector<int> taken(40, -1);
    int next = 0;
    emulator::config = {seed, 4};
    launch(Cuda{}, ticket, 40, 1, &next, taken.data());
    return taken;
  };
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    orders.insert(order(seed));
    EXPECT_EQ(order(seed), order(seed));
  }
  EXPECT_EQ(orders.size(), seeds);
  const std::vector<int> in_order = order(0);
  EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
}

// ---- planted bugs ---------------------------------------------------------------------------------------------------

__global__ void divergent_barrier() {
  if (threadIdx.x < 40)
    __syncthreads();
  else
    __syncwarp();
}
TEST(PlantedBug, DivergentBarrier) {
  expect_found("deadlock", divergent_barrier, 1, 64);
}

__global__ void early_return() {
  if (threadIdx.x == 5) return;
  __syncthreads();
}
TEST(PlantedBug, ReturnBeforeABarrier) {
  expect_found("return", early_return, 1, 64);
}

__global__ void half_the_warp_returns(int* out) {
  if (threadIdx.x < 16) return;
  out[threadIdx.x] = __shfl_xor_sync(~0u, 1, 1);
}
TEST(PlantedBug, ReturnBeforeACollective) {
  std::vector<int> out(32);
  expect_found("return", half_the_warp_returns, 1, 32, out.data());
}

__global__ void different_collectives(int* out) {
  if (threadIdx.x < 16)
    out[threadIdx.x] = __shfl_xor_sync(~0u, 1, 1);
  else
    __syncwarp();
}
TEST(PlantedBug, LanesInDifferentCollectives) {
  std::vector<int> out(32);
  expect_found("different operations", different_collectives, 1, 32, out.data());
}

__global__ void two_masks(int* out) {
  out[threadIdx.x] = __shfl_xor_sync(threadIdx.x < 16 ? 0xffffu : ~0u, 1, 1);
}
TEST(PlantedBug, MasksDisagree) {
  std::vector<int> out(32);
  expect_found("collective", two_masks, 1, 32, out.data());
}

__global__ void not_in_its_mask(int* out) {
  out[threadIdx.x] = __shfl_sync(0xffffu, 1, 0);
}
TEST(PlantedBug, LaneOutsideItsOwnMask) {
  std::vector<int> out(32);
  expect_found("outside its own mask", not_in_its_mask, 1, 32, out.data());
}

__global__ void reads_an_idle_lane(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1, 20);
}
TEST(PlantedBug, ShuffleFromAnIdleLane) {
  std::vector<int> out(32);
  expect_found("does not take part", reads_an_idle_lane, 1, 32, out.data());
}

__global__ void needs_the_block_before(int* done) {  // CUDA promises no order of blocks
  if (blockIdx.x)
    while (!device::load_acquire(&done[blockIdx.x - 1])) device::spin_pause();
  device::store_release(&done[blockIdx.x], 1);
}
TEST(PlantedBug, RelianceOnBlockOrderIsALivelock) {
  std::vector<int> done(32, 0);
  emulator::config = {5, 2};
  EXPECT_THROW(launch(Cuda{}, needs_the_block_before, 32, 1, done.data()), std::runtime_error);
}

__global__ void forgotten_barrier(double* out) {
  GOSSAMER_SHARED(double, held, 64);
  if (threadIdx.x == 63)
    held[0] = 1;  // a race, which ThreadSanitizer does not watch here: planted/ has one that it does
  if (threadIdx.x == 0) out[0] = held[0];
}
TEST(PlantedBug, ForgottenBarrierReadsNaN) {
  double out = 0;
  emulator::config = {0, 1};
  launch(Cuda{}, forgotten_barrier, 1, 64, &out);
  EXPECT_TRUE(std::isnan(out));
}

__global__ void too_much_shared() {
  GOSSAMER_SHARED(double, held, 7000);
  held[threadIdx.x] = 0;
}
TEST(PlantedBug, TooMuchSharedMemory) {
  expect_found("48 KiB", too_much_shared, 1, 1);
}

__global__ void nothing() {}
TEST(PlantedBug, ImpossibleLaunches) {
  expect_found("invalid block", nothing, 1, 1025);
  expect_found("invalid block", nothing, 1, 0);
  expect_found("invalid grid", nothing, dim3(1, 70000), 1);
  launch(Cuda{}, nothing, 0, 32);  // an empty matrix
}

__global__ void launches_again() {
  launch(Cuda{}, nothing, 1, 1);
}
TEST(PlantedBug, LaunchInsideAKernel) {
  expect_found("inside a kernel", launches_again, 1, 1);
}

}  // namespace
}  // namespace gossamer::test
