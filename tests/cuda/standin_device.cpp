// SPDX-License-Identifier: BSD-3-Clause
// Test only: what torch asks of a device "cuda:0" (its guard and stream, its memory, its hooks), answered by the host.
// The operators that run there are in standin.cpp.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstdlib>

#include "standin_graph.h"

namespace {

const c10::Device cuda(c10::DeviceType::CUDA, 0);

// One device, one stream. Launches run to their end before they return, so there is nothing to wait for.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, cuda); }

  c10::DeviceType type() const override { return cuda.type(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device exchangeDevice(c10::Device) const override { return cuda; }
  c10::Device getDevice() const override { return cuda; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}

  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}

  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

std::atomic<size_t> largest_allocation = 0;

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    size_t before = largest_allocation;
    while (before < bytes && !largest_allocation.compare_exchange_weak(before, bytes)) {
    }
    void* p = bytes ? std::malloc(bytes) : nullptr;
    TORCH_CHECK(p || !bytes, "cuda stand-in: no memory for ", bytes, " bytes");
    if (!standin::capturing()) return {p, p, &std::free, cuda};
    standin::own(p);
    return {p, p, [](void*) {}, cuda};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
} memory;
REGISTER_ALLOCATOR(c10::DeviceType::CUDA, &memory)

// Torch finds the hooks by the name of the class.
struct CUDAHooks : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return 1; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  void deviceSynchronize(c10::DeviceIndex) const override {}
  c10::Device getDeviceFromPtr(void*) const override { return cuda; }
  c10::Allocator* getCUDADeviceAllocator() const override { return &memory; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::kCPU); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
};
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace

// The bytes of the largest allocation on the device since the last call.
extern "C" size_t gossamer_standin_largest_allocation() {
  return largest_allocation.exchange(0);
}
