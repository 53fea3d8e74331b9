// SPDX-License-Identifier: BSD-3-Clause
// Own rows of Y = A X, or of Aᵀ X if t, from own rows of X:
//
//   Y = block [X; halo of X]        dA = sddmm_rows(A, G, X), operands swapped if t        dX = spmm_rows(A, G, !t)
//
// The halo of G is fetched for dX, and no partial sums are sent back: so the bits are those of spmm in one process.
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

void check(const Exchange& exchange, const Tensor& values, const Tensor& X, bool t, const MaybeTensor& halo) {
  if (t) exchange.route("spmm");
  const Block& A = exchange.block(t);
  const int64_t entries = exchange.block(false).entries();
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.dim() <= 2 && values.sym_size(0) == entries, "spmm: values ",
                    shape_text(values), " must be (nnz,) or (nnz, H) for the ", entries, " entries of this rank");
  TORCH_CHECK_VALUE(X.dim() >= 1 && X.sym_size(0) == A.owned, "spmm: X ", shape_text(X), " must have the ", A.owned,
                    " rows of this rank");
  check_same_dtype("spmm", "X", X, "values", values);
  distributed::check_device("spmm", X, A);
  distributed::check_device("spmm", values, A);
  const bool heads = values.dim() == 2;
  TORCH_CHECK_VALUE(heads || X.dim() <= 2, "spmm: X must be (n,) or (n, d), not ", shape_text(X));
  TORCH_CHECK_VALUE(!heads || (X.dim() >= 2 && X.dim() <= 3 && X.sym_size(1) == values.sym_size(1)), "spmm: values ",
                    shape_text(values), " need X of shape (n, H) or (n, H, d), not ", shape_text(X));
  if (halo) distributed::check_halo("spmm", *halo, "X", X, A);
}

// What has no kernel of two arrays, complex numbers, integers and devices, by the ops of one process.
Tensor on_one_array(const Group& group, const Exchange& exchange, const Tensor& values, const Tensor& X, bool t,
                    const MaybeTensor& kept) {
  const Block& A = exchange.block(t);
  const Tensor halo = kept ? *kept : group.all_to_all(X.index_select(0, A.send_rows), A.send, A.recv);
  Tensor v = values;
  if (t) {
    const auto& route = exchange.route("spmm");
    v = at::cat({values, distributed::cut_values_begin(group, route, values).wait()}).index_select(0, route.into);
  }
  return ops::spmm(A.pattern(), v, at::cat({X, halo}), A.shape(), /*t=*/false);
}

// Into how many parts one process cuts A for Aᵀ x with a vector, if it does.
template <class T, class I>
int64_t parts_of_all(const distributed::Quarters& quarters) {
  Csr<T, I> whole;
  whole.nnz = quarters.entries, whole.cols = quarters.cols;
  return kernels::scatter_parts(whole);
}

// The rows that need no halo are computed while the halo, and for Aᵀ the values of cut entries, are under way.
Tensor on_two_arrays(const Group& group, const Exchange& exchange, const Tensor& values, const Tensor& X, bool t,
                     const MaybeTensor& kept) {
  const Block& A = exchange.block(t);
  std::optional<Pending> halo_comes, values_come;
  if (!kept) halo_comes = group.all_to_all_begin(X.index_select(0, A.send_rows), A.send, A.recv);
  if (t) values_come = distributed::cut_values_begin(group, exchange.route("spmm"), values);
  auto size = X.sizes().vec();
  size[0] = A.rows;
  const Tensor Y = empty_result(c10::fromIntArrayRefSlow(size), X.options());
  const Tensor x = with_compact_rows(X), v = values.contiguous();
  const bool heads = values.dim() == 2;
  const int64_t H = heads ? values.size(1) : 1, width = X.dim() == heads + 2 ? X.size(-1) : 1;
  with_types("spmm", X.scalar_type(), A.indptr.scalar_type(), [&]<class T, class I> {
    CsrOfMany<T, I> M{A.view<T, I>(v, H, t ? exchange.route("spmm").into : Tensor())};
    bool in_parts = false;
    if constexpr (std::same_as<T, Sum<T>>)
      in_parts = t && H * width == 1 && parts_of_all<T, I>(exchange.quarters()) > 1;
    const Ranges inside{ptr<int64_t>(A.interior), A.interior.size(0) / 2};
    if (!in_parts)
      kernels::spmm_inside(torch_pool(), static_cast<const Csr<T, I>&>(M), inside, ptr<T>(x), x.stride(0), width,
                           mutable_ptr<T>(Y));
    const Tensor halo = (kept ? *kept : halo_comes->wait()).contiguous();
    const Tensor came = t ? values_come->wait() : Tensor();
    M.own = values.size(0);
    if (t) M.came = ptr<T>(came);
    const TwoSources<T> both{ptr<T>(x), x.stride(0), ptr<T>(halo), H * width, A.owned};
    if (!in_parts) return kernels::spmm_border(torch_pool(), M, inside, both, width, mutable_ptr<T>(Y));
    if constexpr (std::same_as<T, Sum<T>>) {
      const Tensor parts = at::floor_divide(exchange.quarters().of_rows, 4 / parts_of_all<T, I>(exchange.quarters()));
      kernels::spmv_in_parts(torch_pool(), M, ptr<uint8_t>(parts), both, mutable_ptr<T>(Y));
    }
  });
  return Y;
}

Exchange agreed_on(const Group& group, TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& X,
                   bool t, const MaybeTensor& kept) {
  const std::string common = "spmm: values " + distributed::row_text(values) + ", X " + distributed::row_text(X) +
                             (t ? ", transposed" : "") + (kept ? ", its halo at hand" : "");
  return distributed::agreed(group, "spmm", plan, counts, common,
                             [&](const Exchange& exchange) { check(exchange, values, X, t, kept); });
}

Tensor forward(TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& X, bool t,
               const MaybeTensor& kept, bool, std::string_view name) {
  if (X.is_meta()) {
    const Exchange exchange("spmm", plan, counts);
    check(exchange, values, X, t, kept);
    auto size = X.sym_sizes().vec();
    size[0] = exchange.block(t).rows;
    return at::empty_symint(size, X.options());
  }
  const Group group(name);
  const Exchange exchange = agreed_on(group, plan, counts, values, X, t, kept);
  const bool kernel = X.is_cpu() && X.is_floating_point();
  return (kernel ? on_two_arrays : on_one_array)(group, exchange, values, X, t, kept);
}

// The halo of X is of use once more for dA of A X: kept if the caller wants to pay for it with memory. It is a copy of
// what X has on other ranks, not one more variable, and holds for X itself, not for a tangent in its place.
Tensor autograd(TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& X, bool t,
                const MaybeTensor& given, bool keep, std::string_view name) {
  MaybeTensor kept = given;
  if (keep && !given && !t && wants_derivative(values)) {
    const bool traced = !distributed::has_contents(plan) || !distributed::has_contents({values, X});
    const Exchange exchange =
        traced ? Exchange("spmm", plan, counts) : agreed_on(Group(name), plan, counts, values, X, t, kept);
    const Block& A = exchange.block(t);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    kept = ops::halo(X, A.send_rows, A.send, A.recv, name);
  }
  return differentiable(
      "spmm_rows", {values, X},
      [&](const variable_list& in) {
        const MaybeTensor halo = in[1].is_same(X) ? kept : std::nullopt;
        return ops::spmm_rows(plan, counts, in[0], in[1], t, halo, keep, name);
      },
      [plan = plan.vec(), counts = counts.vec(), t, kept, keep, name = std::string(name)](
          const Tensor& G, const variable_list& in, const Tensor&, const Wanted& wanted) {
        variable_list grads(2);
        const Tensor x = in[1].conj();
        const Tensor left = with_columns(in[0], t ? x : G), right = with_columns(in[0], t ? G : x);
        MaybeTensor halo;
        if (kept && keep && !t) halo = with_columns(in[0], kept->conj());
        if (wanted[0]) grads[0] = ops::sddmm_rows(plan, counts, left, right, halo, keep, name);
        if (wanted[1]) grads[1] = ops::spmm_rows(plan, counts, in[0].conj(), G, !t, {}, keep, name);
        return grads;
      });
}

Tensor batched(TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& X, bool t,
               const MaybeTensor&, bool keep, std::string_view name) {
  return heads_or_columns("spmm", plan, values, X, /*per_head=*/{},
                          [&](const Tensor& v, const Tensor& x, const Tensor&) {
                            return ops::spmm_rows(plan, counts, v, x, t, /*halo=*/{}, keep, name);
                          });
}

const Op<decltype(ops::spmm_rows)> op{{
    .schema = "spmm_rows(Tensor[] plan, int[] counts, Tensor values, Tensor X, bool t, Tensor? halo, bool keep_halo, "
              "str group) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .autocast = true,
}};

}  // namespace

Tensor ops::spmm_rows(TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& X, bool t,
                      const MaybeTensor& halo, bool keep_halo, std::string_view group) {
  return op(plan, counts, values, X, t, halo, keep_halo, group);
}

}  // namespace gossamer
