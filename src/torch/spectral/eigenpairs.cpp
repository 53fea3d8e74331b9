// SPDX-License-Identifier: BSD-3-Clause
// Op: `eigenpairs`, A X = M X Θ with Xᵀ M X = 1. Θ is diagonal where it is computed, and its derivative is a full block
// on each cluster of equal values (1 on the clusters: I, as a mask). With F = A' X - M' X Θ, R the deflated solve and Q
// the quotient of the clusters,
//
//   Θ' = I ∘ sym(Xᵀ F)        X' = -R(F) + X (Q(Xᵀ F) - ½ I ∘ Xᵀ M' X)
//
// and, since R and Q are their own adjoints, with N = Xᵀ G, Z = X (sym(I ∘ Ḡ) + Q(N)) - R(G), Ḡ that of Θ:
//
//   dA = Z Xᵀ        dM = -(Z Θ + ½ X (I ∘ N)) Xᵀ        on the pattern
//
// Neither depends on the basis of a cluster, if the loss does not: so their derivatives are right, too.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/batch.h"
#include "core/differentiable.h"
#include "core/op.h"
#include "spectral/clusters.h"
#include "spectral/lanczos.h"
#include "spectral/pencil.h"
#include "spectral/transform.h"

namespace gossamer {
namespace {

// All pairs of a small matrix, of which the best ones are taken. rows are vectors.
Pairs dense_pairs(const SpectralTransform& T, int64_t k, Which which) {
  Tensor A = T.dense_A(), inverse;  // L⁻¹ A L⁻ᵀ with M = L Lᵀ
  if (T.has_mass()) {
    const auto [L, failed] = at::linalg_cholesky_ex(T.dense_M());
    TORCH_CHECK_VALUE(failed.item<int64_t>() == 0, "eigsh: M must be positive definite");
    inverse = at::linalg_solve_triangular(L, at::eye(T.n(), L.options()), /*upper=*/false);
    A = inverse.matmul(A).matmul(inverse.t());
  }
  const auto [values, X] = at::linalg_eigh(A.add(A.t()).mul(0.5));
  Pairs all{{}, X.t().contiguous(), {}};
  if (T.has_mass()) all.X = all.X.matmul(inverse);
  std::vector<std::pair<double, int64_t>> ranked;
  for (int64_t i = 0; i < T.n(); ++i) {
    const double value = ptr<double>(values)[i];
    ranked.emplace_back(rank(which, T.sigma() ? 1 / (value - *T.sigma()) : value), i);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < k; ++i)  // from both ends, the larger half from the high one
    taken.push_back(which != Which::both_ends || i < k - k / 2 ? ranked[i].second
                                                               : ranked[T.n() - 1 - (k - 1 - i)].second);
  Pairs found;
  for (const int64_t i : taken) found.theta.push_back(ptr<double>(values)[i]);  // λ itself
  found.X = all.X.index_select(0, at::tensor(taken));
  return found;
}

// The pairs that Lanczos finds, λ instead of θ. If σ is itself a value, T is that of a number s beside it, |s - σ| = δ,
// and the k values nearest to s may leave some out that are nearer to σ. All within R of s are known, R the distance of
// the farthest; so the k nearest to σ, all within D of it, are certain if D + δ ≤ R. If not, more are computed.
Pairs lanczos_pairs(const SpectralTransform& T, const Search& search) {
  const double s = T.shift(), sigma = T.sigma().value_or(s);
  const bool beside = sigma != s && search.which == Which::largest_magnitude;
  for (Search wider = search;; wider.k *= 2) {
    if (wider.k > T.n() / 3 && wider.k > search.k) return dense_pairs(T, search.k, search.which);
    if (wider.k > search.k) wider.ncv = std::min(T.n(), std::max(search.ncv, 2 * wider.k + 1));
    Pairs found = lanczos(T, wider);
    for (double& theta : found.theta) theta = T.value(theta);
    if (!beside) return found;
    double R = 0;
    for (const double value : found.theta) R = std::max(R, std::abs(value - s));
    std::vector<int64_t> order(found.theta.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::abs(found.theta[a] - sigma) < std::abs(found.theta[b] - sigma);
    });
    order.resize(static_cast<size_t>(search.k));
    const double D = std::abs(found.theta[order.back()] - sigma);
    if (D + std::abs(sigma - s) > R * (1 + 1e-9)) continue;
    Pairs nearest;
    for (const int64_t i : order) nearest.theta.push_back(found.theta[i]);
    nearest.X = found.X.index_select(0, at::tensor(order));
    return nearest;
  }
}

// Each vector with its largest entry positive, so that the sign is a function of the matrix.
Tensor with_signs(const Tensor& X) {
  return X.mul(X.gather(1, X.abs().argmax(1, /*keepdim=*/true)).sign());
}

std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& transform, TensorList, const Tensor&,
                                           const ops::OptionalTensor&, SymIntArrayRef, int64_t k,
                                           c10::string_view which_name, int64_t ncv, int64_t maxiter, double tol,
                                           const ops::OptionalTensor& v0, double) {
  const auto T = object_of<SpectralTransform>(transform);
  const Which which = which_named(which_name);
  const int64_t n = T->n();
  TORCH_CHECK_VALUE(1 <= k && k <= n, "eigsh: k must be between 1 and ", n, ", the number of rows, not ", k);
  Pairs pairs;
  if (T->dense()) {
    pairs = dense_pairs(*T, k, which);
  } else {
    TORCH_CHECK_VALUE(k < ncv && ncv <= n, "eigsh: ncv must be above k = ", k, " and at most ", n, ", not ", ncv);
    TORCH_CHECK_VALUE(maxiter >= 1, "eigsh: maxiter must be positive, not ", maxiter);
    TORCH_CHECK_VALUE(!v0 || (v0->dim() == 1 && v0->size(0) == n), "eigsh: v0 must be (", n, ",), not ",
                      v0 ? shape_text(*v0) : "");
    const Tensor start = v0 ? v0->to(at::kCPU, at::kDouble).reshape({1, n}).contiguous() : random_row(n, /*seed=*/0);
    pairs = lanczos_pairs(*T, {k, which, ncv, maxiter, tol, start});
  }
  const auto [values, order] = at::tensor(pairs.theta, at::kDouble).sort(/*stable=*/std::optional<bool>(true));
  const double gap = std::max(1e-9 * values.abs().max().item<double>(), 1e-13 * T->size());
  const Tensor X = with_signs(pairs.X.index_select(0, order)).t().contiguous();
  return {at::diag_embed(values), X, cluster_labels(values.contiguous(), gap)};
}

Tensor symmetric(const Tensor& S) {
  return S.add(S.t()).mul(0.5);
}

variable_list vjp(const Pencil& P, const variable_list& grads, const variable_list& outputs, const Wanted& wanted,
                  double tolerance) {
  const Tensor &Theta = outputs[0], &X = outputs[1], &labels = outputs[2];
  const Tensor within = within_clusters(labels);
  Tensor Z, N;
  if (grads[0].defined()) Z = X.matmul(symmetric(grads[0].mul(within)));
  if (grads[1].defined()) {
    const Tensor G = ops::same_for_every_basis(labels, X, grads[1], tolerance);
    N = inner_products(X, G);
    Z = sum_of(Z, X.matmul(ops::cluster_quotient(Theta, N, labels)).sub(P.solve(X, Theta, G)));
  }
  variable_list result(4);
  if (wanted[0]) result[0] = P.on_pattern(Z, X);
  if (wanted[1]) {
    Tensor U = Z.matmul(Theta);
    if (N.defined()) U = U.add(X.matmul(N.mul(within)), 0.5);
    result[1] = P.on_pattern(U, X).neg();
  }
  return result;
}

variable_list jvp(const Pencil& P, const variable_list& tangents, const variable_list& outputs) {
  const Tensor &Theta = outputs[0], &X = outputs[1], &labels = outputs[2];
  const Tensor within = within_clusters(labels);
  Tensor F, MX;
  if (tangents[0].defined()) F = P.times(tangents[0], X);
  if (tangents[1].defined()) {
    MX = P.times(tangents[1], X);
    F = sum_of(F, MX.matmul(Theta).neg());
  }
  const Tensor XF = inner_products(X, F);
  Tensor inside = ops::cluster_quotient(Theta, XF, labels);
  if (MX.defined()) inside = inside.sub(inner_products(X, MX).mul(within), 0.5);
  return {symmetric(XF).mul(within), X.matmul(inside).sub(P.solve(X, Theta, F))};
}

std::tuple<Tensor, Tensor, Tensor> autograd(const Tensor& transform, TensorList pattern, const Tensor& a,
                                            const ops::OptionalTensor& m, SymIntArrayRef shape, int64_t k,
                                            c10::string_view which, int64_t ncv, int64_t maxiter, double tol,
                                            const ops::OptionalTensor& v0, double tolerance) {
  const auto S = pattern.vec();
  const auto size = shape.vec();
  const auto pencil = [S, size](const variable_list& in) { return Pencil{in[2], S, size, in[0], in[1]}; };
  const auto out = differentiable_many(
      "eigenpairs", {a, m.value_or(Tensor()), transform, v0.value_or(Tensor())},
      [&](const variable_list& in) {
        const Pencil P = pencil(in);
        const auto start = in[3].defined() ? ops::OptionalTensor(in[3]) : std::nullopt;
        const auto [Theta, X, labels] =
            ops::eigenpairs(in[2], S, in[0], P.mass(), size, k, which, ncv, maxiter, tol, start, tolerance);
        return variable_list{Theta, X, labels};
      },
      [pencil, tolerance](const variable_list& grads, const variable_list& in, const variable_list& outputs,
                          const Wanted& wanted) { return vjp(pencil(in), grads, outputs, wanted, tolerance); },
      [&](const variable_list& in, const variable_list& tangents, const variable_list& outputs) {
        return jvp(pencil(in), tangents, outputs);
      },
      /*differentiable=*/2, /*keep_outputs=*/true);
  return {out[0], out[1], out[2]};
}

std::tuple<Tensor, Tensor, Tensor> batched(const Tensor& transform, TensorList pattern, const Tensor& a,
                                           const ops::OptionalTensor& m, SymIntArrayRef shape, int64_t k,
                                           c10::string_view which, int64_t ncv, int64_t maxiter, double tol,
                                           const ops::OptionalTensor& v0, double tolerance) {
  const auto given = [](const Tensor& t) { return t.defined() ? ops::OptionalTensor(t) : std::nullopt; };
  const variable_list tensors = {transform, a, m.value_or(Tensor()), v0.value_or(Tensor())};
  const auto results = one_by_one("eigsh", pattern, tensors, [&](const variable_list& in) {
    const auto [Theta, X, labels] = ops::eigenpairs(in[0], pattern, in[1], given(in[2]), shape, k, which, ncv, maxiter,
                                                    tol, given(in[3]), tolerance);
    return variable_list{Theta, X, labels};
  });
  return {results[0], results[1], results[2]};
}

const Op<decltype(ops::eigenpairs)> op{{
    .schema = "eigenpairs(Tensor transform, Tensor[] pattern, Tensor a, Tensor? m, SymInt[] shape, int k, str which, "
              "int ncv, int maxiter, float tol, Tensor? v0, float tolerance) -> (Tensor, Tensor, Tensor)",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .meta = false,
}};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> ops::eigenpairs(const Tensor& transform, TensorList pattern, const Tensor& a,
                                                   const OptionalTensor& m, SymIntArrayRef shape, int64_t k,
                                                   c10::string_view which, int64_t ncv, int64_t maxiter, double tol,
                                                   const OptionalTensor& v0, double tolerance) {
  return op(transform, pattern, a, m, shape, k, which, ncv, maxiter, tol, v0, tolerance);
}

}  // namespace gossamer
