// SPDX-License-Identifier: BSD-3-Clause
// The choice of instruction set, and the only two ways between memory and a vector.
#include <cstdlib>
#include <optional>
#include <string>

#include <gossamer/kernels/simd.h>
#include "dense.h"

namespace gossamer::test {
namespace {

// Sets GOSSAMER_SIMD (null: unsets it) and puts it back.
class Environment {
 public:
  explicit Environment(const char* value) {
    if (const char* before = std::getenv("GOSSAMER_SIMD")) before_ = before;
    set(value);
  }
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const char* value) { value ? setenv("GOSSAMER_SIMD", value, 1) : unsetenv("GOSSAMER_SIMD"); }
  std::optional<std::string> before_;
};

SimdLevel level_with(const char* value) {
  const Environment environment(value);
  return detect_simd_level();
}

constexpr SimdLevel levels[] = {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512};

TEST(SimdLevel, AscendsAndHasNames) {
  EXPECT_LT(SimdLevel::baseline, SimdLevel::avx2);
  EXPECT_LT(SimdLevel::avx2, SimdLevel::avx512);
  EXPECT_STREQ(name(SimdLevel::baseline), "baseline");
  EXPECT_STREQ(name(SimdLevel::avx2), "avx2");
  EXPECT_STREQ(name(SimdLevel::avx512), "avx512");
}

TEST(SimdLevel, EnvironmentOnlyLowers) {
  const SimdLevel best = level_with(nullptr);
  for (const SimdLevel wanted : levels) EXPECT_EQ(level_with(name(wanted)), std::min(wanted, best)) << name(wanted);
}

TEST(SimdLevel, OtherWordsAreIgnored) {
  const SimdLevel best = level_with(nullptr);
  for (const char* word : {"", "AVX2", "avx", "avx5120", "baseline "}) EXPECT_EQ(level_with(word), best) << word;
}

// CTest runs this binary once for each level; what follows then runs on it, as do the kernels' tests.
TEST(SimdLevel, IsTheOneOfTheEnvironment) {
  const char* wanted = std::getenv("GOSSAMER_SIMD");
  EXPECT_EQ(simd_level(), level_with(wanted));
  std::cout << "level: " << name(simd_level()) << "\n";
}

TEST(Simd, GivesTheRegisterWidth) {
  int seen = 0;
  simd([&]<int bytes> { seen += bytes; });
  EXPECT_EQ(seen, 16 << static_cast<int>(simd_level()));
}

// to[k] = 3 from[k] for n lanes at every alignment; small integers, so exact in every type.
template <int n, class T>
[[gnu::always_inline]] inline void triple(const T* from, T* to) {
  Vec<Sum<T>, n> x;
  load<n>(from, x);
  x = x * Sum<T>(3);
  store<n>(x, to);
}

template <int n, class T, class Run>
void expect_tripled(const Run& run) {
  bool fits = false;
  run([&]<int bytes> { fits = n * sizeof(Sum<T>) <= bytes; });
  if (!fits) return;
  for (int64_t shift = 0; shift < 9; ++shift) {
    std::vector<T> from(shift + n), to(shift + n + 1, rounded<T>(-1));
    for (int64_t k = 0; k < n; ++k) from[shift + k] = rounded<T>(static_cast<double>(k % 16 - 5));
    run([&]<int bytes> {
      if constexpr (n * sizeof(Sum<T>) <= bytes) triple<n>(from.data() + shift, to.data() + shift);
    });
    for (int64_t k = 0; k < shift + n + 1; ++k) {
      const bool inside = k >= shift && k < shift + n;
      ASSERT_EQ(static_cast<double>(to[k]), inside ? 3 * static_cast<double>(from[k]) : -1)
          << "lane " << k - shift << " of " << n << ", shift " << shift;
    }
  }
}

template <class T, class Run>
void expect_tripled_at_all_sizes(const Run& run) {
  expect_tripled<1, T>(run);
  expect_tripled<2, T>(run);
  expect_tripled<4, T>(run);
  expect_tripled<8, T>(run);
  if constexpr (sizeof(Sum<T>) == 4) expect_tripled<16, T>(run);
}

template <class T>
struct Lanes : testing::Test {};
using Scalars = testing::Types<float, double, bfloat16, float16>;
TYPED_TEST_SUITE(Lanes, Scalars);

TYPED_TEST(Lanes, LoadAndStoreAtTheLevelChosen) {
  expect_tripled_at_all_sizes<TypeParam>([](const auto& f) { simd(f); });
}

#if defined(__x86_64__)
TYPED_TEST(Lanes, LoadAndStoreWithAvx2) {
  if (level_with(nullptr) < SimdLevel::avx2) GTEST_SKIP() << "no AVX2 here";
  expect_tripled_at_all_sizes<TypeParam>([](const auto& f) { run_avx2(f); });
}

TYPED_TEST(Lanes, LoadAndStoreWithAvx512) {
  if (level_with(nullptr) < SimdLevel::avx512) GTEST_SKIP() << "no AVX-512 here";
  expect_tripled_at_all_sizes<TypeParam>([](const auto& f) { run_avx512(f); });
}
#endif

// sums[k] = Σ_lane v[k][lane] for n vectors of small integers, so exact.
template <int lanes, int n, class S>
[[gnu::always_inline]] inline void expect_sums() {
  S numbers[n][lanes], want[n] = {}, got[n];
  Vec<S, lanes> v[n];
  Vec<S, n> sums;
  for (int k = 0; k < n; ++k) {
    for (int lane = 0; lane < lanes; ++lane) want[k] += numbers[k][lane] = static_cast<S>(k * 100 + lane * lane);
    load<lanes>(numbers[k], v[k]);
  }
  sums_of_lanes<lanes, n, n, S>(v, sums);
  store<n>(sums, got);
  for (int k = 0; k < n; ++k) EXPECT_EQ(got[k], want[k]) << "vector " << k << " of " << n << ", " << lanes << " lanes";
}

TEST(Simd, SumsTheLanesOfManyVectors) {
  simd([]<int bytes> {
    constexpr int lanes = bytes / sizeof(double);
    expect_sums<lanes, 1, double>();
    expect_sums<lanes, 2, double>();
    expect_sums<lanes, lanes, double>();
    expect_sums<2 * lanes, 1, float>();
    expect_sums<2 * lanes, 2, float>();
    expect_sums<2 * lanes, lanes, float>();
    expect_sums<2 * lanes, 2 * lanes, float>();
  });
}

// Lanes are converted as scalars are, to the bit: f<n>() for every n that fits in a register of the level chosen.
template <class F>
void for_each_lane_count(const F& f) {
  simd([&]<int bytes> {
    if constexpr (bytes >= 64) f.template operator()<16>();
    if constexpr (bytes >= 32) f.template operator()<8>();
    f.template operator()<4>();
    f.template operator()<2>();
  });
}

template <class T>
struct HalfLanes : testing::Test {};
using Halves = testing::Types<bfloat16, float16>;
TYPED_TEST_SUITE(HalfLanes, Halves);

// All patterns of 16 bits, NaN and its payloads included.
TYPED_TEST(HalfLanes, LoadEveryPatternAsAScalar) {
  std::vector<TypeParam> halves(0x10000);
  std::vector<float> want(halves.size()), got(halves.size());
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    halves[bits].bits = static_cast<uint16_t>(bits);
    want[bits] = static_cast<float>(halves[bits]);
  }
  for_each_lane_count([&]<int n>() GOSSAMER_INLINED {
    for (size_t k = 0; k < halves.size(); k += n) {
      Vec<float, n> x;
      load<n>(&halves[k], x);
      store<n>(x, &got[k]);
    }
    expect_same_bits(got, want);
    std::fill(got.begin(), got.end(), 0.0f);
  });
}

// Each half as a float, the float before and the one after it, and all of them 2^k ulp away: ties, what lies beside
// them, subnormal numbers, the largest ones, infinities and NaN with payloads above and below what a half can hold.
TYPED_TEST(HalfLanes, StoreAnyFloatAsAScalar) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    TypeParam half;
    half.bits = static_cast<uint16_t>(bits);
    const auto u = __builtin_bit_cast(uint32_t, static_cast<float>(half));
    for (const uint32_t away : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u})
      for (const uint32_t v : {u + away, u - away}) values.push_back(__builtin_bit_cast(float, v));
  }
  Random random(11);
  for (int k = 0; k < 1 << 20; ++k)
    values.push_back(__builtin_bit_cast(float, static_cast<uint32_t>(random.below(int64_t{1} << 32))));
  std::vector<TypeParam> want(values.size()), got(values.size());
  for (size_t k = 0; k < values.size(); ++k) want[k] = TypeParam(values[k]);
  for_each_lane_count([&]<int n>() GOSSAMER_INLINED {
    for (size_t k = 0; k < values.size(); k += n) {
      Vec<float, n> x;
      load<n>(&values[k], x);
      store<n>(x, &got[k]);
    }
    expect_same_bits(got, want);
    std::fill(got.begin(), got.end(), TypeParam());
  });
}

}  // namespace
}  // namespace gossamer::test
