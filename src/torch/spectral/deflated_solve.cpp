// SPDX-License-Identifier: BSD-3-Clause
// Op: `deflated_solve`, W = R(B): the bordered system of A W - M W Θ, for eigenvectors X with values Θ,
//
//   A W - M W Θ + M X C = B        Xᵀ M W = 0
//
// It is its own adjoint. With V = R(G), and C = Xᵀ(B - A W), D = Xᵀ(G - A V), all on the pattern of A and M:
//
//   dB = V        dA = -V Wᵀ        dM = V Θ Wᵀ - V (X C)ᵀ - X D Wᵀ        dΘ = Wᵀ M V        dX = -(M V Cᵀ + M W Dᵀ)
//   W' = R(B' - A' W + M' W Θ + M W Θ' - M' X C - M X' C) - X (X'ᵀ M W + Xᵀ M' W)
//
// Θ is diagonal where this is computed, so each column is a system of its own: with the transform of Lanczos, by MINRES
// or, of a small matrix, by all eigenvectors of the complement.
#include <ATen/ATen.h>
#include <gossamer/convergence.h>

#include "core/batch.h"
#include "core/differentiable.h"
#include "core/op.h"
#include "spectral/minres.h"
#include "spectral/pencil.h"
#include "spectral/transform.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "deflated_solve";

// With Q an orthonormal basis of what is orthogonal to Lᵀ X, M = L Lᵀ, and Qᵀ L⁻¹ A L⁻ᵀ Q = Z diag(μ) Zᵀ:
// w_i = L⁻ᵀ Q Z ((Zᵀ Qᵀ L⁻¹ b_i) / (μ - λ_i)).
Tensor dense_solve(const SpectralTransform& T, const Tensor& X, const Tensor& values, const Tensor& B) {
  const int64_t n = T.n(), k = X.size(1);
  if (k == n) return at::zeros_like(B);
  const Tensor L = at::linalg_cholesky(T.dense_M());
  const Tensor inverse = at::linalg_solve_triangular(L, at::eye(n, L.options()), /*upper=*/false);
  const Tensor basis = std::get<0>(at::linalg_qr(L.t().matmul(X), "complete")).narrow(1, k, n - k);
  const Tensor E = basis.t().matmul(inverse);  // Qᵀ L⁻¹
  const Tensor S = E.matmul(T.dense_A()).matmul(E.t());
  const auto [mu, Z] = at::linalg_eigh(S.add(S.t()).mul(0.5));
  const Tensor right = Z.t().matmul(E.matmul(B)), gaps = mu.unsqueeze(1).sub(values);
  const Tensor closed = gaps.abs().le(1e-12 * T.size());  // a value that is also among those left out
  if (closed.logical_and(right.abs().gt(1e-10 * B.norm())).any().item<bool>())
    throw_not_converged("eigsh",
                        "k cuts a space of equal eigenvalues, so its vectors have no derivative; ask for all of them");
  return E.t().matmul(Z.matmul(at::where(closed, at::zeros_like(right), right.div(gaps))));
}

Tensor forward(const Tensor& transform, TensorList, const Tensor&, const ops::OptionalTensor&, const Tensor& X,
               const Tensor& Theta, const Tensor& B, SymIntArrayRef) {
  const auto T = object_of<SpectralTransform>(transform);
  for (const Tensor& t : {X, Theta, B})
    TORCH_CHECK_VALUE(t.dim() == 2 && t.is_cpu() && t.scalar_type() == at::kDouble, op_name,
                      ": X, Theta and B must be matrices in float64 on the host, not ", shape_text(t), " in ",
                      t.scalar_type());
  const int64_t k = Theta.size(0);
  TORCH_CHECK_VALUE(Theta.size(1) == k && X.size(0) == T->n() && X.size(1) == k && B.sizes() == X.sizes(), op_name,
                    ": Theta must be (k, k), X and B (", T->n(), ", k), not ", shape_text(Theta), ", ", shape_text(X),
                    " and ", shape_text(B));
  const Tensor values = Theta.diagonal();
  if (T->dense()) return dense_solve(*T, X, values, B);
  const Tensor rows = X.t().contiguous(), mass = T->mass(rows);
  const Tensor r = without_components(B.t().contiguous(), rows, mass);  // B - M X Xᵀ B
  const Tensor wanted = r.abs().amax(1).gt(1e-15 * B.abs().max().item<double>()).nonzero().squeeze(1);
  Tensor W = at::zeros_like(r);
  if (wanted.numel() == 0) return W.t().contiguous();
  Tensor theta = at::empty({wanted.size(0), 1}, X.options());
  for (int64_t i = 0; i < wanted.size(0); ++i)
    mutable_ptr<double>(theta)[i] = T->theta(values[ptr<int64_t>(wanted)[i]].item<double>());
  // (A - λM) w = r is (T - θ) w = -θ (A - σM)⁻¹ r or, without σ, M⁻¹ r.
  Tensor right = T->solve(r.index_select(0, wanted));
  if (T->sigma()) right = right.mul(theta).neg();
  right = without_components(right, mass, rows);
  return W.index_copy(0, wanted, minres(*T, theta, right, rows, mass)).t().contiguous();
}

variable_list vjp(const Pencil& P, const Tensor& G, const variable_list& in, const Tensor& W, const Wanted& wanted) {
  const Tensor &X = in[2], &Theta = in[3], &B = in[4];
  const Tensor V = P.solve(X, Theta, G);
  const Tensor C = inner_products(X, B.sub(P.A(W))), D = inner_products(X, G.sub(P.A(V)));
  variable_list grads(6);
  if (wanted[0]) grads[0] = P.on_pattern(V, W).neg();
  if (wanted[1]) grads[1] = P.on_pattern(V.matmul(Theta).sub(X.matmul(D)), W).sub(P.on_pattern(V, X.matmul(C)));
  if (wanted[2]) grads[2] = P.M(V.matmul(C.t()).add(W.matmul(D.t()))).neg();
  if (wanted[3]) grads[3] = inner_products(W, P.M(V));
  if (wanted[4]) grads[4] = V;
  return grads;
}

Tensor jvp(const Pencil& P, const variable_list& in, const variable_list& tangents, const Tensor& W) {
  const Tensor &X = in[2], &Theta = in[3], &B = in[4];
  const Tensor &dA = tangents[0], &dM = tangents[1], &dX = tangents[2], &dTheta = tangents[3];
  const Tensor C = inner_products(X, B.sub(P.A(W)));
  Tensor right = tangents[4], inside;
  if (dA.defined()) right = sum_of(right, P.times(dA, W).neg());
  if (dM.defined()) {
    right = sum_of(right, P.times(dM, W.matmul(Theta).sub(X.matmul(C))));
    inside = inner_products(X, P.times(dM, W));
  }
  if (dTheta.defined()) right = sum_of(right, P.M(W.matmul(dTheta)));
  if (dX.defined()) {
    right = sum_of(right, P.M(dX.matmul(C)).neg());
    inside = sum_of(inside, inner_products(dX, P.M(W)));
  }
  Tensor result = P.solve(X, Theta, right);
  return inside.defined() ? result.sub(X.matmul(inside)) : result;
}

Tensor autograd(const Tensor& transform, TensorList pattern, const Tensor& a, const ops::OptionalTensor& m,
                const Tensor& X, const Tensor& Theta, const Tensor& B, SymIntArrayRef shape) {
  const auto S = pattern.vec();
  const auto size = shape.vec();
  const auto pencil = [S, size](const variable_list& in) { return Pencil{in[5], S, size, in[0], in[1]}; };
  return differentiable(
      op_name, {a, m.value_or(Tensor()), X, Theta, B, transform},
      [&](const variable_list& in) { return pencil(in).solve(in[2], in[3], in[4]); },
      [pencil](const Tensor& G, const variable_list& in, const Tensor& W, const Wanted& wanted) {
        return vjp(pencil(in), G, in, W, wanted);
      },
      [&](const variable_list& in, const variable_list& tangents, const Tensor& W) {
        return jvp(pencil(in), in, tangents, W);
      });
}

Tensor batched(const Tensor& transform, TensorList pattern, const Tensor& a, const ops::OptionalTensor& m,
               const Tensor& X, const Tensor& Theta, const Tensor& B, SymIntArrayRef shape) {
  const variable_list tensors = {a, m.value_or(Tensor()), X, Theta, B, transform};
  return one_by_one(op_name, pattern, tensors, [&](const variable_list& in) {
    const Pencil pencil{in[5], pattern.vec(), shape.vec(), in[0], in[1]};
    return variable_list{pencil.solve(in[2], in[3], in[4])};
  })[0];
}

const Op<decltype(ops::deflated_solve)> op{{
    .schema = "deflated_solve(Tensor transform, Tensor[] pattern, Tensor a, Tensor? m, Tensor X, Tensor Theta, "
              "Tensor B, SymInt[] shape) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .meta = false,
}};

}  // namespace

Tensor ops::deflated_solve(const Tensor& transform, TensorList pattern, const Tensor& a, const OptionalTensor& m,
                           const Tensor& X, const Tensor& Theta, const Tensor& B, SymIntArrayRef shape) {
  return op(transform, pattern, a, m, X, Theta, B, shape);
}

}  // namespace gossamer
