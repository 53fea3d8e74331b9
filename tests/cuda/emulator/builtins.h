// SPDX-License-Identifier: BSD-3-Clause
// CUDA's built-in names, as kernels use them, in terms of the emulator. Meanings follow the CUDA C++ Programming Guide.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "emulator.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define threadIdx (::emulator::here().thread)
#define blockIdx (::emulator::here().block)
#define blockDim (::emulator::here().block_dim)
#define gridDim (::emulator::here().grid_dim)
inline constexpr int warpSize = 32;

namespace emulator {

template <class T>
Word pack(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(Word));
  Word word{};
  std::memcpy(&word, &value, sizeof value);
  return word;
}
template <class T>
T unpack(Word word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
inline unsigned lane() {
  const Coordinates& c = here();
  return (c.thread.x + c.block_dim.x * (c.thread.y + c.block_dim.y * c.thread.z)) % 32;
}
template <class T>
T shuffle(unsigned mask, T value, unsigned source) {
  return unpack<T>(collective(Op::shuffle, mask, pack(value), source).value);
}
// Read, change, write in one step, relaxed as CUDA's atomics are.
template <class T, class F>
T update(T* p, F change) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  auto* bits = reinterpret_cast<Bits*>(p);
  Bits old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(bits, &old, std::bit_cast<Bits>(static_cast<T>(change(std::bit_cast<T>(old)))),
                                      false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  progress();
  return std::bit_cast<T>(old);
}

}  // namespace emulator

inline void __syncthreads() {
  emulator::barrier(false);
}
inline int __syncthreads_count(int p) {
  return emulator::barrier(p != 0).count;
}
inline int __syncthreads_or(int p) {
  return emulator::barrier(p != 0).count != 0;
}
inline int __syncthreads_and(int p) {
  const auto all = emulator::barrier(p != 0);
  return all.count == all.threads;
}

inline void __syncwarp(unsigned mask = ~0u) {
  emulator::collective(emulator::Op::sync, mask, {}, 0);
}
inline unsigned __ballot_sync(unsigned mask, int p) {
  return emulator::collective(emulator::Op::ballot, mask, emulator::pack<uint64_t>(p != 0), 0).bits;
}
inline int __any_sync(unsigned mask, int p) {
  return __ballot_sync(mask, p) != 0;
}
inline int __all_sync(unsigned mask, int p) {
  const auto all = emulator::collective(emulator::Op::ballot, mask, emulator::pack<uint64_t>(p != 0), 0);
  return all.bits == all.lanes;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  return emulator::collective(emulator::Op::match, mask, emulator::pack(value), 0).bits;
}

// `width` splits the warp into groups that shuffle on their own; a lane that would read past its group reads itself.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned within = static_cast<unsigned>(width - 1);
  return emulator::shuffle(mask, value, (emulator::lane() & ~within) | (static_cast<unsigned>(source) & within));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = emulator::lane(), first = lane & ~static_cast<unsigned>(width - 1);
  return emulator::shuffle(mask, value, lane < first + delta ? lane : lane - delta);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = emulator::lane(), last = lane | static_cast<unsigned>(width - 1);
  return emulator::shuffle(mask, value, lane + delta > last ? lane : lane + delta);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  const unsigned lane = emulator::lane(), last = lane | static_cast<unsigned>(width - 1);
  const unsigned source = lane ^ static_cast<unsigned>(with);
  return emulator::shuffle(mask, value, source > last ? lane : source);
}

template <class T>
T atomicAdd(T* p, std::type_identity_t<T> v) {
  return emulator::update(p, [v](T old) { return old + v; });
}
template <class T>
T atomicMax(T* p, std::type_identity_t<T> v) {
  return emulator::update(p, [v](T old) { return old < v ? v : old; });
}
template <class T>
T atomicMin(T* p, std::type_identity_t<T> v) {
  return emulator::update(p, [v](T old) { return v < old ? v : old; });
}
template <class T>
T atomicOr(T* p, std::type_identity_t<T> v) {
  return emulator::update(p, [v](T old) { return old | v; });
}
template <class T>
T atomicExch(T* p, std::type_identity_t<T> v) {
  return emulator::update(p, [v](T) { return v; });
}
template <class T>
T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  return emulator::update(p, [=](T old) { return old == expected ? v : old; });
}

inline int __popc(unsigned v) {
  return std::popcount(v);
}
inline int __ffs(int v) {
  return __builtin_ffs(v);
}
inline int __clz(int v) {
  return std::countl_zero(static_cast<unsigned>(v));
}
template <class T>
T min(T a, std::type_identity_t<T> b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, std::type_identity_t<T> b) {
  return a < b ? b : a;
}
