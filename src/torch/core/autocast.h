// SPDX-License-Identifier: BSD-3-Clause
// torch.autocast: products are computed in the lower precision (with float32 sums), as torch's own matmul is.
#pragma once
#include <ATen/autocast_mode.h>

namespace gossamer {

// While it lives, ops run without autocast; cast() gives a tensor in the precision autocast asks for.
class Autocast {
 public:
  explicit Autocast(c10::DeviceType device)
      : device_(device), off_(at::autocast::get_autocast_dispatch_key_from_device_type(device)) {}
  at::Tensor cast(const at::Tensor& t) const {
    return at::autocast::cached_cast(at::autocast::get_autocast_dtype(device_), t, device_);
  }

 private:
  c10::DeviceType device_;
  c10::impl::ExcludeDispatchKeyGuard off_;
};

}  // namespace gossamer
