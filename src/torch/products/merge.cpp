// SPDX-License-Identifier: BSD-3-Clause
// The union and the intersection of two patterns, with position maps. Integers only, on the host, once per pair.
#include <gossamer/kernels/merge.h>

#include <ATen/ATen.h>

#include <gossamer/products.h>
#include "core/csr.h"
#include "core/host.h"
#include "core/launch.h"
#include "core/op.h"
#include "products/pairs.h"
#include "structure/device.h"

namespace gossamer {
namespace {

using MergedParts = std::tuple<Tensor, Tensor, Tensor, Tensor>;

MergedParts merge(TensorList pattern_A, TensorList pattern_B, at::IntArrayRef shape, bool intersect) {
  const KeptResults kept;
  const char* op = intersect ? "hadamard" : "spadd";  // what the user called
  const auto pair = host_pair(op, pattern_A, shape, pattern_B, shape);
  const PatternTensors &A = pair.first, &B = pair.second;
  const auto type = A.indptr.scalar_type();
  MergedParts result;
  with_index_type<void>(type, [&]<class, class I> {
    const int64_t nnz_A = A.indices.numel(), nnz_B = B.indices.numel();
    TORCH_CHECK_VALUE(nnz_A + nnz_B <= std::numeric_limits<I>::max(), op, ": ", nnz_A, " + ", nnz_B,
                      " entries may be more than int32 indices can count");
    const Tensor indptr = host_integers(shape[0] + 1, type);
    kernels::merge_count(torch_pool(), A.view<I>(), B.view<I>(), intersect, mutable_ptr<I>(indptr));
    const int64_t nnz = ptr<I>(indptr)[shape[0]];
    const Tensor indices = host_integers(nnz, type), at_A = host_integers(intersect ? nnz : nnz_A, type),
                 at_B = host_integers(intersect ? nnz : nnz_B, type);
    const auto fill = intersect ? kernels::intersection_fill<Pool, I> : kernels::union_fill<Pool, I>;
    fill(torch_pool(), A.view<I>(), B.view<I>(), ptr<I>(indptr), mutable_ptr<I>(indices), mutable_ptr<I>(at_A),
         mutable_ptr<I>(at_B));
    result = {indptr, indices, at_A, at_B};
  });
  return result;
}

MergedParts merge_on_device(TensorList A, TensorList B, at::IntArrayRef shape, bool intersect) {
  const char* op = intersect ? "hadamard" : "spadd";
  check_device_pair(op, A, shape, B, shape);
  TORCH_CHECK_VALUE(device_patterns::has_keys(shape), op, ": ", shape[0], " x ", shape[1],
                    " places are more than a device can count");
  return device_patterns::merge(A, B, shape, intersect);
}

const Op<decltype(ops::merge)> merge_op{{
    .schema = "merge(Tensor[] A, Tensor[] B, int[] shape, bool intersect) -> (Tensor indptr, Tensor indices, Tensor "
              "at_A, Tensor at_B)",
    .forward = merge,
    .on_device = merge_on_device,
    .meta = false,
}};

}  // namespace

MergedParts ops::merge(TensorList A, TensorList B, at::IntArrayRef shape, bool intersect) {
  return merge_op(A, B, shape, intersect);
}

}  // namespace gossamer
