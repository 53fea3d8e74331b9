// SPDX-License-Identifier: BSD-3-Clause
// What is done to all arguments of an op alike: they are cast for torch.autocast, their device is found, and, where the
// host must help, they are moved there, and the results back.
#pragma once
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace gossamer {

using at::Tensor;
using at::TensorList;

// While it lives, ops run without autocast. cast() gives an op's argument in the precision that autocast asks for, or
// in float32: floating-point tensors but float64 are cast, everything else (patterns, shapes, numbers) is passed on.
class Autocast {
 public:
  Autocast(c10::DeviceType device, bool low)
      : device_(device),
        type_(low ? at::autocast::get_autocast_dtype(device) : at::kFloat),
        off_(at::autocast::get_autocast_dispatch_key_from_device_type(device)) {}

  Tensor cast(const Tensor& t) const { return at::autocast::cached_cast(type_, t, device_); }
  std::optional<Tensor> cast(const std::optional<Tensor>& t) const {
    return t ? std::optional(cast(*t)) : std::nullopt;
  }
  template <class Argument>
  const Argument& cast(const Argument& argument) const {
    return argument;
  }

 private:
  c10::DeviceType device_;
  at::ScalarType type_;
  c10::impl::ExcludeDispatchKeyGuard off_;
};

// Whether a derivative of a result by this argument is to be recorded, backward or forward.
inline bool wants_derivative(const Tensor& t) {
  return t.defined() && ((t.requires_grad() && c10::GradMode::is_enabled()) || t._fw_grad(/*level=*/0).defined());
}
inline bool wants_derivative(const std::optional<Tensor>& t) {
  return t && wants_derivative(*t);
}
inline bool wants_derivative(TensorList tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return wants_derivative(t); });
}
template <class Argument>
bool wants_derivative(const Argument&) {
  return false;
}

inline Tensor on_host(const Tensor& t) {
  return t.defined() ? t.cpu() : t;
}
inline std::vector<Tensor> on_host(TensorList tensors) {
  std::vector<Tensor> host_tensors;
  for (const Tensor& t : tensors) host_tensors.push_back(on_host(t));
  return host_tensors;
}

inline Tensor on_device(const Tensor& result, at::Device device) {
  return result.to(device);
}
template <class... Results>
std::tuple<Results...> on_device(const std::tuple<Results...>& results, at::Device device) {
  return std::apply([&](const auto&... result) { return std::tuple<Results...>(on_device(result, device)...); },
                    results);
}

// The device that the arguments of `op` are on, which must be one. Some may be on the host: the op itself says which.
class DeviceOf {
 public:
  explicit DeviceOf(const std::string& op) : op_(op) {}

  template <class... Arguments>
  at::Device all(const Arguments&... arguments) {
    (look(arguments), ...);
    return device_.value_or(at::kCPU);
  }

 private:
  void look(const Tensor& t) {
    if (!t.defined() || t.is_cpu()) return;
    if (!device_) device_ = t.device();
    TORCH_CHECK_VALUE(*device_ == t.device(), op_, ": some tensors are on ", *device_, " and others on ", t.device());
  }
  void look(const std::optional<Tensor>& t) {
    if (t) look(*t);
  }
  void look(TensorList tensors) {
    for (const Tensor& t : tensors) look(t);
  }
  template <class Argument>
  void look(const Argument&) {}

  const std::string& op_;
  std::optional<at::Device> device_;
};

}  // namespace gossamer
