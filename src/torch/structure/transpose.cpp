// SPDX-License-Identifier: BSD-3-Clause
// The transpose of a pattern and the permutation back to A's values. Integers only: nothing to differentiate.
// The host's patterns are built here, those of a device by structure/device.h.
#include <ATen/ops/empty.h>
#include <gossamer/kernels/transpose.h>

#include "core/csr.h"
#include "core/host.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"
#include "structure/device.h"

namespace gossamer {
namespace {

std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape) {
  const KeptResults kept;
  const PatternTensors A = host_pattern("transpose", {indptr, indices}, shape);
  const auto options = indptr.options();
  const Tensor indptr_t = empty_result({A.cols + 1}, options), indices_t = empty_result({A.nnz()}, options),
               perm = empty_result({A.nnz()}, options);
  if (indptr.is_meta()) return {indptr_t, indices_t, perm};
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    kernels::transpose(A.view<I>(), mutable_ptr<I>(indptr_t), mutable_ptr<I>(indices_t), mutable_ptr<I>(perm));
  });
  return {indptr_t, indices_t, perm};
}

const Op<decltype(ops::transpose)> op{{
    .schema =
        "transpose(Tensor indptr, Tensor indices, SymInt[] shape) -> (Tensor indptr_t, Tensor indices_t, Tensor perm)",
    .forward = forward,
    .on_device = device_patterns::transpose,
}};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> ops::transpose(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape) {
  return op(indptr, indices, shape);
}

}  // namespace gossamer
