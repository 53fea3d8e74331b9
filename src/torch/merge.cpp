// SPDX-License-Identifier: BSD-3-Clause
// The union and the intersection of two patterns, with position maps. Integers only, on the host, once per pair.
#include <gossamer/merge.h>

#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>

#include "csr.h"
#include "gossamer/sparse_ops.h"
#include "host.h"
#include "launch.h"

namespace gossamer {
namespace {

using Merged = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Merged merge(TensorList list_A, TensorList list_B, at::IntArrayRef shape, bool intersect) {
  const KeptResults kept;
  const auto size = c10::fromIntArrayRefSlow(shape);
  const Tensor indptr_A = list_A[0].cpu(), indices_A = list_A[1].cpu();
  const Tensor indptr_B = list_B[0].cpu(), indices_B = list_B[1].cpu();
  const PatternTensors A = unpack("merge", {indptr_A, indices_A}, size, false);
  const PatternTensors B = unpack("merge", {indptr_B, indices_B}, size, false);
  TORCH_CHECK_TYPE(indptr_A.scalar_type() == indptr_B.scalar_type(), "merge: A has ", indptr_A.scalar_type(),
                   " indices but B has ", indptr_B.scalar_type());
  const auto options = indptr_A.options();
  const auto device = list_A[0].device();
  Merged result;
  with_index_type<void>(indptr_A.scalar_type(), [&]<class, class I> {
    TORCH_CHECK_VALUE(indices_A.numel() + indices_B.numel() <= std::numeric_limits<I>::max(),
                      "merge: ", indices_A.numel(), " + ", indices_B.numel(),
                      " entries may be more than int32 indices can count");
    const Tensor indptr = at::empty({shape[0] + 1}, options);
    kernels::merge_count(TorchThreads{}, A.view<I>(), B.view<I>(), intersect, mutable_ptr<I>(indptr));
    const int64_t nnz = ptr<I>(indptr)[shape[0]];
    const Tensor indices = at::empty({nnz}, options), from_A = at::empty({nnz}, options),
                 from_B = at::empty({nnz}, options);
    const Tensor to_A = at::empty_like(indices_A), to_B = at::empty_like(indices_B);
    kernels::merge_fill(TorchThreads{}, A.view<I>(), B.view<I>(), intersect, ptr<I>(indptr), mutable_ptr<I>(indices),
                        mutable_ptr<I>(from_A), mutable_ptr<I>(to_A), mutable_ptr<I>(from_B), mutable_ptr<I>(to_B));
    result = {indptr.to(device), indices.to(device), from_A.to(device),
              to_A.to(device),   from_B.to(device),  to_B.to(device)};
  });
  return result;
}

}  // namespace

Merged ops::merge(TensorList A, TensorList B, at::IntArrayRef shape, bool intersect) {
  return gossamer::merge(A, B, shape, intersect);
}

TORCH_LIBRARY_FRAGMENT(gossamer, m) {
  m.def(
      "merge(Tensor[] A, Tensor[] B, int[] shape, bool intersect) -> "
      "(Tensor indptr, Tensor indices, Tensor from_A, Tensor to_A, Tensor from_B, Tensor to_B)",
      merge);
}

}  // namespace gossamer
