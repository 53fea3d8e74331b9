// SPDX-License-Identifier: BSD-3-Clause
// values = (U Vᵀ) on the pattern A.        dU = spmm(G on A, V)        dV = spmm(G on A, U, transposed)
// (Complex: with the conjugates of V and U.)
#include <ATen/ops/empty.h>
#include <gossamer/kernels/sddmm.h>
#include <gossamer/products.h>

#include "core/batch.h"
#include "core/bilinear.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

Tensor forward(TensorList pattern, const Tensor& U, const Tensor& V, SymIntArrayRef shape) {
  if (U.is_complex()) {
    check_same_dtype("sddmm", "V", V, "U", U);
    return bilinear(U, V, [&](const Tensor& u, const Tensor& v) { return forward(pattern, u, v, shape); });
  }
  const PatternTensors A = unpack("sddmm", pattern, shape, /*t=*/false);
  check_dense("sddmm", "U", U, A, A.rows, "rows");
  check_dense("sddmm", "V", V, A, A.cols, "columns");
  check_same_dtype("sddmm", "V", V, "U", U);
  TORCH_CHECK_VALUE(U.dim() <= 3 && U.sym_sizes().slice(1) == V.sym_sizes().slice(1), "sddmm: U ", shape_text(U),
                    " and V ", shape_text(V), " must be (n,), (n, d) or (n, H, d) and agree but for their rows");
  const bool heads = U.dim() == 3;
  std::vector<SymInt> size = {A.nnz()};
  if (heads) size.push_back(U.sym_size(1));
  const Tensor values = empty_result(size, U.options());
  launch("sddmm", U, A.indptr, [&]<class T, class I>(auto exec) {
    const Tensor u = with_compact_rows(U), v = with_compact_rows(V);
    const int64_t H = heads ? U.size(1) : 1, width = U.dim() == 1 ? 1 : U.size(-1);
    kernels::sddmm(exec, A.view<I>(), H, ptr<T>(u), u.stride(0), ptr<T>(v), v.stride(0), width, mutable_ptr<T>(values));
  });
  return values;
}

Tensor autograd(TensorList pattern, const Tensor& U, const Tensor& V, SymIntArrayRef shape) {
  return differentiable(
      "sddmm", {U, V}, [&](const variable_list& in) { return ops::sddmm(pattern, in[0], in[1], shape); },
      [P = pattern.vec(), S = shape.vec()](const Tensor& G, const variable_list& in, const Tensor&,
                                           const Wanted& wanted) {
        variable_list grads(2);
        if (wanted[0]) grads[0] = ops::spmm(P, G, in[1].conj(), S, /*t=*/false);
        if (wanted[1]) grads[1] = ops::spmm(P, G, in[0].conj(), S, /*t=*/true);
        return grads;
      });
}

Tensor batched(TensorList pattern, const Tensor& U, const Tensor& V, SymIntArrayRef shape) {
  return more_heads_of_both("sddmm", pattern, U, V,
                            [&](const Tensor& u, const Tensor& v) { return ops::sddmm(pattern, u, v, shape); });
}

const Op<decltype(ops::sddmm)> op{{
    .schema = "sddmm(Tensor[] pattern, Tensor U, Tensor V, SymInt[] shape) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .autocast = true,
}};

}  // namespace

Tensor ops::sddmm(TensorList pattern, const Tensor& U, const Tensor& V, SymIntArrayRef shape) {
  return op(pattern, U, V, shape);
}

SparseMatrix sddmm(const Pattern& pattern, const Tensor& U, const Tensor& V) {
  return SparseMatrix(pattern, ops::sddmm(pattern.tensors_for({V}), U, V, pattern.sym_shape()));
}

}  // namespace gossamer
