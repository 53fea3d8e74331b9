// SPDX-License-Identifier: BSD-3-Clause
// (U Vᵀ) on this rank's entries, from own rows of U and V:
//
//   values = sddmm(block, U, [V; halo of V])        dU = spmm_rows(G on A, V)        dV = spmm_rows(G on A, U,
//   transposed)
#include <ATen/ATen.h>
#include <gossamer/distributed.h>
#include <gossamer/kernels/border.h>
#include <gossamer/products.h>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"
#include "distributed/exchange.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

using distributed::Block;
using distributed::Exchange;
using distributed::Group;
using distributed::Pending;
using MaybeTensor = std::optional<Tensor>;

void check(const Block& A, const Tensor& U, const Tensor& V, const MaybeTensor& halo) {
  TORCH_CHECK_VALUE(U.dim() >= 1 && U.sym_size(0) == A.rows, "sddmm: U ", shape_text(U), " must have the ", A.rows,
                    " rows of this rank");
  TORCH_CHECK_VALUE(V.dim() >= 1 && V.sym_size(0) == A.owned, "sddmm: V ", shape_text(V), " must have the ", A.owned,
                    " columns of this rank");
  check_same_dtype("sddmm", "V", V, "U", U);
  TORCH_CHECK_TYPE(!is_integral(U), "sddmm: U must be floating-point numbers, not ", U.scalar_type());
  distributed::check_device("sddmm", U, A);
  distributed::check_device("sddmm", V, A);
  TORCH_CHECK_VALUE(U.dim() <= 3 && U.sym_sizes().slice(1) == V.sym_sizes().slice(1), "sddmm: U ", shape_text(U),
                    " and V ", shape_text(V), " must be (n,), (n, d) or (n, H, d) and agree but for their rows");
  if (halo) distributed::check_halo("sddmm", *halo, "V", V, A);
}

// The entries of rows that need no halo are computed while it is under way.
Tensor on_two_arrays(const Group& group, const Block& A, const Tensor& U, const Tensor& V, const MaybeTensor& kept) {
  std::optional<Pending> comes;
  if (!kept) comes = group.all_to_all_begin(V.index_select(0, A.send_rows), A.send, A.recv);
  const bool heads = U.dim() == 3;
  const int64_t H = heads ? U.size(1) : 1, width = U.dim() == 1 ? 1 : U.size(-1);
  std::vector<SymInt> size = {A.entries()};
  if (heads) size.push_back(H);
  const Tensor values = empty_result(size, U.options()), u = with_compact_rows(U), v = with_compact_rows(V);
  with_types("sddmm", U.scalar_type(), A.indptr.scalar_type(), [&]<class T, class I> {
    const Ranges inside{ptr<int64_t>(A.interior), A.interior.size(0) / 2};
    const PatternView<I> M = A.view<I>();
    kernels::sddmm_inside(torch_pool(), M, inside, H, ptr<T>(u), u.stride(0), ptr<T>(v), v.stride(0), width,
                          mutable_ptr<T>(values));
    const Tensor halo = (kept ? *kept : comes->wait()).contiguous();
    const TwoSources<T> both{ptr<T>(v), v.stride(0), ptr<T>(halo), H * width, A.owned};
    kernels::sddmm_border(torch_pool(), M, inside, H, ptr<T>(u), u.stride(0), both, width, mutable_ptr<T>(values));
  });
  return values;
}

Tensor forward(TensorList plan, at::IntArrayRef counts, const Tensor& U, const Tensor& V, const MaybeTensor& kept, bool,
               std::string_view name) {
  if (U.is_meta()) {
    const Exchange exchange("sddmm", plan, counts);
    const Block& A = exchange.block(false);
    check(A, U, V, kept);
    std::vector<SymInt> size = {A.entries()};
    if (U.dim() == 3) size.push_back(U.sym_size(1));
    return at::empty_symint(size, U.options());
  }
  const Group group(name);
  const std::string common =
      "sddmm: U " + distributed::row_text(U) + ", V " + distributed::row_text(V) + (kept ? ", its halo at hand" : "");
  const Exchange exchange = distributed::agreed(
      group, "sddmm", plan, counts, common, [&](const Exchange& checked) { check(checked.block(false), U, V, kept); });
  const Block& A = exchange.block(false);
  if (U.is_cpu() && U.is_floating_point()) return on_two_arrays(group, A, U, V, kept);
  const Tensor halo = kept ? *kept : group.all_to_all(V.index_select(0, A.send_rows), A.send, A.recv);
  return ops::sddmm(A.pattern(), U, at::cat({V, halo}), A.shape());
}

Tensor autograd(TensorList plan, at::IntArrayRef counts, const Tensor& U, const Tensor& V, const MaybeTensor& kept,
                bool keep, std::string_view name) {
  return differentiable(
      "sddmm_rows", {U, V},
      [&](const variable_list& in) {
        const MaybeTensor halo = in[1].is_same(V) ? kept : std::nullopt;
        return ops::sddmm_rows(plan, counts, in[0], in[1], halo, keep, name);
      },
      [plan = plan.vec(), counts = counts.vec(), keep, name = std::string(name)](
          const Tensor& G, const variable_list& in, const Tensor&, const Wanted& wanted) {
        variable_list grads(2);
        if (wanted[0]) grads[0] = ops::spmm_rows(plan, counts, G, in[1].conj(), /*t=*/false, {}, keep, name);
        if (wanted[1]) grads[1] = ops::spmm_rows(plan, counts, G, in[0].conj(), /*t=*/true, {}, keep, name);
        return grads;
      });
}

Tensor batched(TensorList plan, at::IntArrayRef counts, const Tensor& U, const Tensor& V, const MaybeTensor&, bool keep,
               std::string_view name) {
  return more_heads_of_both("sddmm", plan, U, V, [&](const Tensor& u, const Tensor& v) {
    return ops::sddmm_rows(plan, counts, u, v, /*halo=*/{}, keep, name);
  });
}

const Op<decltype(ops::sddmm_rows)> op{{
    .schema = "sddmm_rows(Tensor[] plan, int[] counts, Tensor U, Tensor V, Tensor? halo, bool keep_halo, str group) -> "
              "Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .autocast = true,
}};

}  // namespace

Tensor ops::sddmm_rows(TensorList plan, at::IntArrayRef counts, const Tensor& U, const Tensor& V,
                       const MaybeTensor& halo, bool keep_halo, std::string_view group) {
  return op(plan, counts, U, V, halo, keep_halo, group);
}

}  // namespace gossamer
