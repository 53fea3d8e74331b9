// SPDX-License-Identifier: BSD-3-Clause
// Ops: `cluster_quotient`, what divides by differences of values; `cluster_values`, the values as users see them; and
// `same_for_every_basis` and `same_for_equal_values`, which check gradients and pass them on.
//
//   C = Q(Θ, N): C Θ - Θ C = N off the clusters, 0 on them        C_ji = N_ji / (λ_i - λ_j) for the diagonal Θ that is
//   C' = Q(N' - C Θ' + Θ' C)        dN = V = Q(Θ, G)        dΘ = V Cᵀ - Cᵀ V
//
// Turn the vectors X of a cluster among themselves, X exp(S) with S = -Sᵀ: a loss changes by Σ S ∘ (Xᵀ G). It must not,
// so Xᵀ G is symmetric on a cluster. And users see the diagonal of Θ alone, so a function of it must treat equal values
// alike: the rest of a derivative off the diagonal is not known to it.
#include "spectral/clusters.h"

#include <ATen/ATen.h>
#include <gossamer/spectral.h>

#include "core/batch.h"
#include "core/differentiable.h"
#include "core/op.h"
#include "spectral/pencil.h"

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

Tensor values_of(const Tensor& Theta, const Tensor&, double) {
  TORCH_CHECK_VALUE(Theta.dim() == 2 && Theta.size(0) == Theta.size(1), "cluster_values: Theta must be (k, k), not ",
                    shape_text(Theta));
  return Theta.diagonal().clone();
}

Tensor autograd_values_of(const Tensor& Theta, const Tensor& labels, double tolerance) {
  return differentiable(
      "eigsh", {Theta, labels}, [&](const variable_list& in) { return ops::cluster_values(in[0], in[1], tolerance); },
      [tolerance](const Tensor& g, const variable_list& in, const Tensor&, const Wanted&) {
        return variable_list{at::diag_embed(ops::same_for_equal_values(in[1], g, tolerance)), Tensor()};
      },
      [](const variable_list&, const variable_list& tangents, const Tensor&) { return tangents[0].diagonal().clone(); },
      /*keep_output=*/false);
}

Tensor check_basis(const Tensor& labels, const Tensor& X, const Tensor& G, double tolerance) {
  const Tensor N = inner_products(X, G), turned = N.sub(N.t()).mul(within_clusters(labels)).abs().max();
  const Tensor sizes = X.norm(2, {0}).max().mul(G.norm(2, {0}).max());
  TORCH_CHECK_VALUE(
      !(turned > sizes * tolerance).item<bool>(),
      "eigsh: the loss depends on the basis of a space of equal eigenvalues, which is arbitrary, so it has "
      "no gradient: turning the basis changes it by ",
      turned.item<double>(), "; use what does not depend on it, such as X Xᵀ of the whole space");
  return G.clone();
}

Tensor check_values(const Tensor& labels, const Tensor& g, double tolerance) {
  const Tensor apart = g.unsqueeze(0).sub(g.unsqueeze(1)).mul(within_clusters(labels)).abs().max();
  TORCH_CHECK_VALUE(
      !(apart > g.abs().max() * tolerance).item<bool>(),
      "eigsh: the loss (or a derivative of it) treats equal eigenvalues differently, and which of them is "
      "which depends on the basis of their space, so it has no gradient: the derivatives differ by ",
      apart.item<double>(), "; use what treats them alike, such as their sum");
  return g.clone();
}

// A check passes its gradient on, and so do its derivatives.
Tensor autograd_basis(const Tensor& labels, const Tensor& X, const Tensor& G, double tolerance) {
  return differentiable(
      "same_for_every_basis", {G, X, labels},
      [&](const variable_list& in) { return ops::same_for_every_basis(in[2], in[1], in[0], tolerance); },
      [](const Tensor& grad, const variable_list&, const Tensor&, const Wanted&) {
        return variable_list{grad, Tensor(), Tensor()};
      },
      [](const variable_list& in, const variable_list& tangents, const Tensor&) {
        return tangents[0].defined() ? tangents[0].clone() : at::zeros_like(in[0]);
      },
      /*keep_output=*/false);
}

Tensor autograd_values(const Tensor& labels, const Tensor& g, double tolerance) {
  return differentiable(
      "same_for_equal_values", {g, labels},
      [&](const variable_list& in) { return ops::same_for_equal_values(in[1], in[0], tolerance); },
      [](const Tensor& grad, const variable_list&, const Tensor&, const Wanted&) {
        return variable_list{grad, Tensor()};
      },
      [](const variable_list&, const variable_list& tangents, const Tensor&) { return tangents[0].clone(); },
      /*keep_output=*/false);
}

// All of these are small: a batch of them is one after the other.
Tensor batched_quotient(const Tensor& Theta, const Tensor& N, const Tensor& labels) {
  return one_by_one("eigsh", {}, {Theta, N, labels}, [](const variable_list& in) {
    return variable_list{ops::cluster_quotient(in[0], in[1], in[2])};
  })[0];
}

Tensor batched_values_of(const Tensor& Theta, const Tensor& labels, double tolerance) {
  return one_by_one("eigsh", {}, {Theta, labels}, [&](const variable_list& in) {
    return variable_list{ops::cluster_values(in[0], in[1], tolerance)};
  })[0];
}

Tensor batched_basis(const Tensor& labels, const Tensor& X, const Tensor& G, double tolerance) {
  return one_by_one("eigsh", {}, {labels, X, G}, [&](const variable_list& in) {
    return variable_list{ops::same_for_every_basis(in[0], in[1], in[2], tolerance)};
  })[0];
}

Tensor batched_values(const Tensor& labels, const Tensor& g, double tolerance) {
  return one_by_one("eigsh", {}, {labels, g}, [&](const variable_list& in) {
    return variable_list{ops::same_for_equal_values(in[0], in[1], tolerance)};
  })[0];
}

const Op<decltype(ops::cluster_quotient)> quotient_op{{
    .schema = "cluster_quotient(Tensor Theta, Tensor N, Tensor labels) -> Tensor",
    .forward = quotient,
    .autograd = autograd_quotient,
    .batched = batched_quotient,
    .meta = false,
}};
const Op<decltype(ops::cluster_values)> values_op{{
    .schema = "cluster_values(Tensor Theta, Tensor labels, float tolerance) -> Tensor",
    .forward = values_of,
    .autograd = autograd_values_of,
    .batched = batched_values_of,
    .meta = false,
}};
const Op<decltype(ops::same_for_every_basis)> basis_op{{
    .schema = "same_for_every_basis(Tensor labels, Tensor X, Tensor G, float tolerance) -> Tensor",
    .forward = check_basis,
    .autograd = autograd_basis,
    .batched = batched_basis,
    .meta = false,
}};
const Op<decltype(ops::same_for_equal_values)> equal_op{{
    .schema = "same_for_equal_values(Tensor labels, Tensor g, float tolerance) -> Tensor",
    .forward = check_values,
    .autograd = autograd_values,
    .batched = batched_values,
    .meta = false,
}};

}  // namespace

Tensor ops::cluster_quotient(const Tensor& Theta, const Tensor& N, const Tensor& labels) {
  return quotient_op(Theta, N, labels);
}

Tensor ops::cluster_values(const Tensor& Theta, const Tensor& labels, double tolerance) {
  return values_op(Theta, labels, tolerance);
}

Tensor ops::same_for_every_basis(const Tensor& labels, const Tensor& X, const Tensor& G, double tolerance) {
  return basis_op(labels, X, G, tolerance);
}

Tensor ops::same_for_equal_values(const Tensor& labels, const Tensor& g, double tolerance) {
  return equal_op(labels, g, tolerance);
}

}  // namespace gossamer
