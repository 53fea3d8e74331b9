// SPDX-License-Identifier: BSD-3-Clause
// Ops: `cluster_quotient`, what divides by differences of values, and `eigen_outputs` with `invariant_gradient`, where
// users' losses are checked.
//
//   C = Q(Θ, N): C Θ - Θ C = N off the clusters, 0 on them        C_ji = N_ji / (λ_i - λ_j) for the diagonal Θ that is
//   C' = Q(N' - C Θ' + Θ' C)        dN = V = Q(Θ, G)        dΘ = V Cᵀ - Cᵀ V
//
// Rotate the vectors X of a cluster among themselves, X exp(S) with S = -Sᵀ: a loss changes by Σ S ∘ (Xᵀ G). It must
// not, so Xᵀ G is symmetric on a cluster; and all values of a cluster must have one gradient g, for which of them grows
// when A changes is not a differentiable question.
#include "spectral/clusters.h"

#include <ATen/ATen.h>
#include <gossamer/spectral.h>

#include "core/differentiable.h"
#include "core/op.h"

namespace gossamer {
namespace {

Tensor quotient(const Tensor& Theta, const Tensor& N, const Tensor& labels) {
  TORCH_CHECK_VALUE(Theta.dim() == 2 && N.sizes() == Theta.sizes() && labels.dim() == 1 &&
                        labels.size(0) == Theta.size(0) && Theta.size(0) == Theta.size(1),
                    "cluster_quotient: Theta and N must be (k, k) and labels (k,), not ", shape_text(Theta), ", ",
                    shape_text(N), " and ", shape_text(labels));
  const Tensor within = within_clusters(labels), values = Theta.diagonal();
  const Tensor differences = values.unsqueeze(0).sub(values.unsqueeze(1)).add(within);  // never 0
  return N.mul(within.neg().add(1)).div(differences);
}

Tensor autograd_quotient(const Tensor& Theta, const Tensor& N, const Tensor& labels) {
  return differentiable(
      "cluster_quotient", {Theta, N, labels},
      [](const variable_list& in) { return ops::cluster_quotient(in[0], in[1], in[2]); },
      [](const Tensor& G, const variable_list& in, const Tensor& C, const Wanted& wanted) {
        const Tensor V = ops::cluster_quotient(in[0], G, in[2]);
        variable_list grads(3);
        if (wanted[0]) grads[0] = V.matmul(C.t()).sub(C.t().matmul(V)).mul(within_clusters(in[2]));
        if (wanted[1]) grads[1] = V;
        return grads;
      },
      [](const variable_list& in, const variable_list& tangents, const Tensor& C) {
        Tensor right = tangents[1].defined() ? tangents[1] : at::zeros_like(in[1]);
        if (tangents[0].defined()) {
          const Tensor T = tangents[0].mul(within_clusters(in[2]));
          right = right.sub(C.matmul(T)).add(T.matmul(C));
        }
        return ops::cluster_quotient(in[0], right, in[2]);
      });
}

std::tuple<Tensor, Tensor> outputs(const Tensor& Theta, const Tensor& X, const Tensor&, double) {
  TORCH_CHECK_VALUE(Theta.dim() == 2 && X.dim() == 2 && X.size(1) == Theta.size(0) && Theta.size(0) == Theta.size(1),
                    "eigen_outputs: Theta must be (k, k) and X (n, k), not ", shape_text(Theta), " and ",
                    shape_text(X));
  return {Theta.diagonal().clone(), X.clone()};
}

std::tuple<Tensor, Tensor> autograd_outputs(const Tensor& Theta, const Tensor& X, const Tensor& labels,
                                            double tolerance) {
  const auto zero_if_none = [](const Tensor& t, at::IntArrayRef size, const Tensor& like) {
    return t.defined() ? t : at::zeros(size, like.options());
  };
  const auto out = differentiable_many(
      "eigsh", {Theta, X, labels},
      [&](const variable_list& in) {
        const auto [values, vectors] = ops::eigen_outputs(in[0], in[1], in[2], tolerance);
        return variable_list{values, vectors};
      },
      [=](const variable_list& grads, const variable_list& in, const variable_list&, const Wanted&) {
        const int64_t k = in[0].size(0);
        const auto [g, G] = ops::invariant_gradient(in[2], in[1], zero_if_none(grads[0], {k}, in[0]),
                                                    zero_if_none(grads[1], in[1].sizes(), in[1]), tolerance);
        return variable_list{grads[0].defined() ? at::diag_embed(g) : Tensor(), grads[1].defined() ? G : Tensor(),
                             Tensor()};
      },
      [](const variable_list&, const variable_list& tangents, const variable_list&) {
        return variable_list{tangents[0].defined() ? tangents[0].diagonal().clone() : Tensor(),
                             tangents[1].defined() ? tangents[1].clone() : Tensor()};
      },
      /*differentiable=*/2, /*keep_outputs=*/false);
  return {out[0], out[1]};
}

std::tuple<Tensor, Tensor> checked(const Tensor& labels, const Tensor& X, const Tensor& g, const Tensor& G,
                                   double tolerance) {
  const Tensor within = within_clusters(labels);
  const Tensor N = X.t().matmul(G), turned = N.sub(N.t()).mul(within).abs().max();
  const Tensor sizes = X.norm(2, {0}).max().mul(G.norm(2, {0}).max());
  TORCH_CHECK_VALUE(
      !(turned > sizes * tolerance).item<bool>(),
      "eigsh: the loss depends on the basis of a space of equal eigenvalues, which is arbitrary, so it has "
      "no gradient: turning the basis changes it by ",
      turned.item<double>(), "; use what does not, such as X Xᵀ of the whole space");
  const Tensor apart = g.unsqueeze(0).sub(g.unsqueeze(1)).mul(within).abs().max();
  TORCH_CHECK_VALUE(!(apart > g.abs().max() * tolerance).item<bool>(),
                    "eigsh: the loss treats equal eigenvalues differently, and which of them is which depends on the "
                    "basis of their space, so it has no gradient: the derivatives differ by ",
                    apart.item<double>(), "; use what does not, such as their sum");
  return {g.clone(), G.clone()};
}

std::tuple<Tensor, Tensor> autograd_checked(const Tensor& labels, const Tensor& X, const Tensor& g, const Tensor& G,
                                            double tolerance) {
  const auto out = differentiable_many(
      "invariant_gradient", {g, G, labels, X},
      [&](const variable_list& in) {
        const auto [a, b] = ops::invariant_gradient(in[2], in[3], in[0], in[1], tolerance);
        return variable_list{a, b};
      },
      [](const variable_list& grads, const variable_list&, const variable_list&, const Wanted&) {
        return variable_list{grads[0], grads[1], Tensor(), Tensor()};
      },
      [](const variable_list&, const variable_list& tangents, const variable_list&) {
        return variable_list{tangents[0], tangents[1]};
      },
      /*differentiable=*/2, /*keep_outputs=*/false);
  return {out[0], out[1]};
}

const Op<decltype(ops::cluster_quotient)> quotient_op{{
    .schema = "cluster_quotient(Tensor Theta, Tensor N, Tensor labels) -> Tensor",
    .forward = quotient,
    .autograd = autograd_quotient,
    .meta = false,
}};
const Op<decltype(ops::eigen_outputs)> outputs_op{{
    .schema = "eigen_outputs(Tensor Theta, Tensor X, Tensor labels, float tolerance) -> (Tensor, Tensor)",
    .forward = outputs,
    .autograd = autograd_outputs,
    .meta = false,
}};
const Op<decltype(ops::invariant_gradient)> checked_op{{
    .schema = "invariant_gradient(Tensor labels, Tensor X, Tensor g, Tensor G, float tolerance) -> (Tensor, Tensor)",
    .forward = checked,
    .autograd = autograd_checked,
    .meta = false,
}};

}  // namespace

Tensor ops::cluster_quotient(const Tensor& Theta, const Tensor& N, const Tensor& labels) {
  return quotient_op(Theta, N, labels);
}

std::tuple<Tensor, Tensor> ops::eigen_outputs(const Tensor& Theta, const Tensor& X, const Tensor& labels,
                                              double tolerance) {
  return outputs_op(Theta, X, labels, tolerance);
}

std::tuple<Tensor, Tensor> ops::invariant_gradient(const Tensor& labels, const Tensor& X, const Tensor& g,
                                                   const Tensor& G, double tolerance) {
  return checked_op(labels, X, g, G, tolerance);
}

}  // namespace gossamer
