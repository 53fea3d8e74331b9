// SPDX-License-Identifier: BSD-3-Clause
// The runs of rows of a pattern that repeat each other. Integers only: nothing to differentiate.
#include <ATen/ops/empty.h>
#include <gossamer/kernels/runs.h>
#include <gossamer/pattern.h>

#include <algorithm>

#include "core/csr.h"
#include "core/host.h"
#include "core/op.h"

namespace gossamer {
namespace {

Tensor forward(const Tensor& indptr, const Tensor& indices, const std::optional<Tensor>& perm, SymIntArrayRef shape) {
  const KeptResults kept;
  const PatternTensors A = host_pattern("runs", {indptr, indices}, shape);
  if (perm) check_integers("runs", "perm", *perm);
  TORCH_CHECK_VALUE(!perm || (perm->sym_size(0) == A.nnz() && perm->scalar_type() == indptr.scalar_type()),
                    "runs: perm must have one entry for each of the ", A.nnz(), ", in the type of indptr");
  Tensor runs;
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    const Tensor map = perm ? perm->contiguous() : Tensor();
    const auto first = kernels::find_runs(A.view<I>(), perm ? ptr<I>(map) : nullptr);
    runs = host_integers(static_cast<int64_t>(first.size()), indptr.scalar_type());
    std::copy(first.begin(), first.end(), mutable_ptr<I>(runs));
  });
  return runs;
}

Tensor on_device(const Tensor& indptr, const Tensor&, const std::optional<Tensor>&, SymIntArrayRef) {
  return at::empty({0}, indptr.options());
}

const Op<decltype(ops::runs)> op{{
    .schema = "runs(Tensor indptr, Tensor indices, Tensor? perm, SymInt[] shape) -> Tensor",
    .forward = forward,
    .on_device = on_device,
    .meta = false,
}};

}  // namespace

Tensor ops::runs(const Tensor& indptr, const Tensor& indices, const std::optional<Tensor>& perm, SymIntArrayRef shape) {
  return op(indptr, indices, perm, shape);
}

}  // namespace gossamer
