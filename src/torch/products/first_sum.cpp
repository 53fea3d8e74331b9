// SPDX-License-Identifier: BSD-3-Clause
// The first sum of two matrices whose patterns have not met: the union and C = A + B on it, in one call. A sum alone
// takes one pass, into room for nnz(A) + nnz(B) entries, and needs no maps; where a derivative will ask for them, and
// on a device, it is `merge` and then `place_sum`, whose derivatives are recorded.
#include <gossamer/kernels/merge.h>

#include <ATen/ATen.h>

#include <gossamer/products.h>
#include "core/csr.h"
#include "core/host.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"
#include "products/pairs.h"

namespace gossamer {
namespace {

using Found = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Found with_maps(TensorList A, const Tensor& a, TensorList B, const Tensor& b, at::IntArrayRef shape) {
  const auto [indptr, indices, at_A, at_B] = ops::merge(A, B, shape, /*intersect=*/false);
  return {indptr, indices, at_A, at_B, ops::place_sum(a, at_A, b, at_B, indices.sym_size(0))};
}

Found forward(TensorList pattern_A, const Tensor& a, TensorList pattern_B, const Tensor& b, at::IntArrayRef shape) {
  const bool real = at::isFloatingType(a.scalar_type()) && a.scalar_type() == b.scalar_type();
  if (!real || a.dim() != 1 || b.dim() != 1) return with_maps(pattern_A, a, pattern_B, b, shape);
  const auto pair = host_pair("spadd", pattern_A, shape, pattern_B, shape);
  const PatternTensors &A = pair.first, &B = pair.second;
  const auto type = A.indptr.scalar_type();
  check_dense("spadd", "the values of A", a, A, A.nnz(), "entries");
  check_dense("spadd", "the values of B", b, B, B.nnz(), "entries");
  Found found;
  launch("spadd", a, A.indptr, [&]<class T, class I>(auto exec) {
    if constexpr (Host<decltype(exec)>) {
      const Tensor u = a.contiguous(), v = b.contiguous();
      const int64_t most = A.indices.numel() + B.indices.numel();
      TORCH_CHECK_VALUE(most <= std::numeric_limits<I>::max(), "spadd: ", A.indices.numel(), " + ", B.indices.numel(),
                        " entries may be more than int32 indices can count");
      Tensor indptr, indices, no_map;
      {
        const KeptResults kept;
        indptr = host_integers(shape[0] + 1, type), indices = host_integers(most, type);
        no_map = host_integers(0, type);
      }
      const Tensor c = empty_result({SymInt(most)}, a.options());
      const int64_t nnz = kernels::union_sum(exec, A.view<T, I>(u, 1), B.view<T, I>(v, 1), mutable_ptr<I>(indptr),
                                             mutable_ptr<I>(indices), mutable_ptr<T>(c));
      shorten(indices, nnz), shorten(c, nnz);
      found = {indptr, indices, no_map, no_map.clone(), c};
    }
  });
  return found;
}

const Op<decltype(ops::first_sum)> op{{
    .schema = "first_sum(Tensor[] A, Tensor a, Tensor[] B, Tensor b, int[] shape) -> (Tensor indptr, Tensor indices, "
              "Tensor at_A, Tensor at_B, Tensor c)",
    .forward = forward,
    .on_device = with_maps,
    .autograd = with_maps,
    .batched = with_maps,
    .meta = false,
}};

}  // namespace

Found ops::first_sum(TensorList A, const Tensor& a, TensorList B, const Tensor& b, at::IntArrayRef shape) {
  return op(A, a, B, b, shape);
}

}  // namespace gossamer
