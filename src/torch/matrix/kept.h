// SPDX-License-Identifier: BSD-3-Clause
// What outlives the transforms of torch.func (grad, jvp, vmap) that a caller may be inside. The results of an op there,
// integers included, are the transform's tensors: they have no memory, and say nothing outside.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "core/host.h"

namespace gossamer {

inline bool is_inside_transform() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

// Whether a transform made this tensor.
inline bool is_wrapped(const Tensor& t) {
  return t.key_set().has_any(
      c10::DispatchKeySet({c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::FuncTorchBatched}));
}

// While it lives, what is made is an ordinary tensor, to be kept with a pattern: neither one of inference mode nor one
// of a transform.
struct KeptTensors {
  KeptResults ordinary;
  c10::impl::ExcludeDispatchKeyGuard no_transform{c10::DispatchKeySet(
      {c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode})};
};

}  // namespace gossamer
