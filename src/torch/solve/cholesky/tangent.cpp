// SPDX-License-Identifier: BSD-3-Clause
// Ops: `cholesky_tangent`, x = J⁻¹ N, and `cholesky_adjoint`, y = J⁻ᵀ G, where J is the linear map of matrices on the
// pattern F of L that the derivative of L Lᵀ is, and so linear in L, too:
//
//   J(L) X = L Xᵀ + X Lᵀ on F        J(L)ᵀ Y = (Y + Yᵀ) L on F        Σ Y ∘ J(L') X = Σ X ∘ J(L')ᵀ Y = Σ L' ∘ J(X)ᵀ Y
//
// Both are solves with J, and have the derivatives of solves, closed under differentiation with masked products:
//
//   x = J⁻¹ N:    dN = J⁻ᵀ g =: y     dL = -J(X)ᵀ Y     x' = J⁻¹ (N' - J(L') X)
//   y = J⁻ᵀ G:    dG = J⁻¹ g =: x     dL = -J(X)ᵀ Y     y' = J⁻ᵀ (G' - J(L')ᵀ Y)
//
// Neither forms J: one pass over the fronts up (kernels/cholesky_tangent.h) or down (kernels/selected_inverse.h).
#include <ATen/ATen.h>
#include <gossamer/cholesky.h>
#include <gossamer/kernels/cholesky_tangent.h>
#include <gossamer/kernels/selected_inverse.h>
#include <gossamer/products.h>

#include "core/batch.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"
#include "solve/cholesky/plan.h"

namespace gossamer {
namespace {

constexpr const char* tangent_name = "cholesky_tangent";
constexpr const char* adjoint_name = "cholesky_adjoint";

Tensor tangent(const Tensor& plan_handle, TensorList factor, const Tensor& l, const Tensor& N) {
  const auto plan = object_of<CholeskyPlan>(on_host(plan_handle));
  check_factor_pattern(tangent_name, *plan, factor);
  const int64_t count = plan->entries.count();
  const auto L = plan->spread(checked_doubles(tangent_name, "l", l, count));
  const auto X = plan->spread(checked_doubles(tangent_name, "N", N, count));
  kernels::cholesky_tangent(torch_pool(), *plan->tree, L.get(), X.get());
  return plan->collect(X.get()).to(l.options());
}

// The kernel takes G / 2 and gives the gradient entry by entry of the whole symmetric matrix: an entry off the diagonal
// stands for two of them.
Tensor adjoint(const Tensor& plan_handle, TensorList factor, const Tensor& l, const Tensor& G) {
  const auto plan = object_of<CholeskyPlan>(on_host(plan_handle));
  check_factor_pattern(adjoint_name, *plan, factor);
  const FactorEntries& entries = plan->entries;
  const auto L = plan->spread(checked_doubles(adjoint_name, "l", l, entries.count()));
  const auto Y = plan->spread(checked_doubles(adjoint_name, "G", G, entries.count()).div(2));
  kernels::cholesky_gradient(torch_pool(), *plan->tree, L.get(), Y.get());
  const Tensor y = plan->collect(Y.get()).mul_(2);
  for (size_t i = 0; i + 1 < entries.indptr.size(); ++i) mutable_ptr<double>(y)[entries.indptr[i + 1] - 1] /= 2;
  return y.to(l.options());
}

// Products on F, which is n × n.
struct OnPattern {
  std::vector<Tensor> F;

  // The kernels check the pattern, but derivatives of meta tensors come here without.
  OnPattern(const char* op, TensorList factor) : F(factor.vec()) {
    TORCH_CHECK_VALUE(F.size() == 2, op, ": the factor's pattern is {indptr, indices}, not ", F.size(), " tensors");
  }
  Tensor product(const Tensor& a, const Tensor& b, ops::ProductForm form) const {
    const SymInt n = F[0].sym_size(0) - 1;
    const std::vector<SymInt> shape = {n, n};
    return ops::spgemm(F, a, shape, F, b, shape, F, shape, form);
  }
  Tensor J(const Tensor& l, const Tensor& x) const { return product(l, x, ops::nt).add(product(x, l, ops::nt)); }
  Tensor J_transposed(const Tensor& l, const Tensor& y) const {
    return product(y, l, ops::nn).add(product(y, l, ops::tn));
  }
};

Tensor difference(const Tensor& a, const Tensor& b) {  // a tangent that is undefined is 0
  return !b.defined() ? a : a.defined() ? a.sub(b) : b.neg();
}

Tensor autograd_tangent(const Tensor& plan, TensorList factor, const Tensor& l, const Tensor& N) {
  const OnPattern on(tangent_name, factor);
  return differentiable(
      tangent_name, {l, N, plan},
      [&](const variable_list& in) { return ops::cholesky_tangent(in[2], on.F, in[0], in[1]); },
      [on](const Tensor& g, const variable_list& in, const Tensor& x, const Wanted& wanted) {
        const Tensor y = ops::cholesky_adjoint(in[2], on.F, in[0], g);
        return variable_list{wanted[0] ? on.J_transposed(x, y).neg() : Tensor(), y, Tensor()};
      },
      [on](const variable_list& in, const variable_list& tangents, const Tensor& x) {
        const Tensor Jx = tangents[0].defined() ? on.J(tangents[0], x) : Tensor();
        return ops::cholesky_tangent(in[2], on.F, in[0], difference(tangents[1], Jx));
      });
}

Tensor autograd_adjoint(const Tensor& plan, TensorList factor, const Tensor& l, const Tensor& G) {
  const OnPattern on(adjoint_name, factor);
  return differentiable(
      adjoint_name, {l, G, plan},
      [&](const variable_list& in) { return ops::cholesky_adjoint(in[2], on.F, in[0], in[1]); },
      [on](const Tensor& g, const variable_list& in, const Tensor& y, const Wanted& wanted) {
        const Tensor x = ops::cholesky_tangent(in[2], on.F, in[0], g);
        return variable_list{wanted[0] ? on.J_transposed(x, y).neg() : Tensor(), x, Tensor()};
      },
      [on](const variable_list& in, const variable_list& tangents, const Tensor& y) {
        const Tensor Jy = tangents[0].defined() ? on.J_transposed(tangents[0], y) : Tensor();
        return ops::cholesky_adjoint(in[2], on.F, in[0], difference(tangents[1], Jy));
      });
}

template <const char* const& name, Tensor (*op)(const Tensor&, TensorList, const Tensor&, const Tensor&)>
Tensor batched(const Tensor& plan, TensorList factor, const Tensor& l, const Tensor& other) {
  return one_by_one(name, factor, {l, other},
                    [&](const variable_list& in) { return variable_list{op(plan, factor, in[0], in[1])}; })[0];
}

const Op<decltype(ops::cholesky_tangent)> tangent_op{{
    .schema = "cholesky_tangent(Tensor plan, Tensor[] factor, Tensor l, Tensor N) -> Tensor",
    .forward = tangent,
    .autograd = autograd_tangent,
    .batched = batched<tangent_name, ops::cholesky_tangent>,
    .meta = false,
}};
const Op<decltype(ops::cholesky_adjoint)> adjoint_op{{
    .schema = "cholesky_adjoint(Tensor plan, Tensor[] factor, Tensor l, Tensor G) -> Tensor",
    .forward = adjoint,
    .autograd = autograd_adjoint,
    .batched = batched<adjoint_name, ops::cholesky_adjoint>,
    .meta = false,
}};

}  // namespace

Tensor ops::cholesky_tangent(const Tensor& plan, TensorList factor, const Tensor& l, const Tensor& N) {
  return tangent_op(plan, factor, l, N);
}

Tensor ops::cholesky_adjoint(const Tensor& plan, TensorList factor, const Tensor& l, const Tensor& G) {
  return adjoint_op(plan, factor, l, G);
}

}  // namespace gossamer
