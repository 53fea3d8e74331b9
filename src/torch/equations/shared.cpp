// SPDX-License-Identifier: BSD-3-Clause
// The quantities that both versions of graph attention share, one function each. Numbers in brackets: the equations.
#include <gossamer/equations.h>
#include <gossamer/products.h>

#include <ATen/ATen.h>

#include <gossamer/reduce.h>
#include "core/csr.h"

namespace gossamer::equations {
namespace {

Tensor check(const char* what, const char* name, const Tensor& t, int64_t dim, const char* wanted) {
  TORCH_CHECK_VALUE(t.dim() == dim, what, ": ", name, " must be ", wanted, ", not ", shape_text(t));
  return t;
}

// (E, K, d) is (E, K·d) to the ops: every feature of a head is a head of its own.
Tensor heads_flat(const Tensor& t) {
  return t.dim() == 3 ? t.flatten(1) : t;
}
Tensor heads_of(const Tensor& flat, const Tensor& like) {
  return like.dim() == 3 ? flat.unflatten(1, like.sizes().slice(1)) : flat;
}

}  // namespace

// (1)  Z = A H W
Tensor convolution(const SparseMatrix& A, const Tensor& H, const Tensor& W) {
  return spmm(A, H).matmul(W);
}

// (2), (3)  X^k = H W^k
Tensor combination(const Tensor& H, const Tensor& W) {
  check("combination", "H", H, 2, "(N, F)");
  check("combination", "W", W, 3, "(K, F, d)");
  TORCH_CHECK_VALUE(H.size(1) == W.size(1), "combination: H has ", H.size(1), " features but W is for ", W.size(1));
  return at::tensordot(H, W, {1}, {1});
}

// (4)  c_i^k = a^kᵀ X_i^k
Tensor coefficients_v1(const Tensor& X, const Tensor& a) {
  check("coefficients", "X", X, 3, "(N, K, d)");
  TORCH_CHECK_VALUE(a.dim() == 2 && a.size(0) == X.size(1) && a.size(1) == X.size(2), "coefficients: a has shape ",
                    shape_text(a), " but X has ", X.size(1), " heads of ", X.size(2));
  return (X * a).sum(-1);
}

// (5)  C_i^k = X_i^k
Tensor coefficients_v2(const Tensor& X) {
  return check("coefficients", "X", X, 3, "(N, K, d)");
}

// ⊕ of (6) – (9)  c_dst,i + c_src,j on the edges
Tensor outer_sum(const Pattern& A, const Tensor& c_dst, const Tensor& c_src) {
  TORCH_CHECK_VALUE(c_dst.dim() == 2 || c_dst.dim() == 3, "outer_sum: c_dst must be (N, K) or (N, K, d), not ",
                    shape_text(c_dst));
  TORCH_CHECK_VALUE(c_dst.sizes().slice(1) == c_src.sizes().slice(1), "outer_sum: c_dst has shape ", shape_text(c_dst),
                    " but c_src has ", shape_text(c_src));
  const auto pattern = A.tensors(c_src.requires_grad());
  const auto shape = A.sym_shape();
  return heads_of(ops::spread(pattern, heads_flat(c_dst), shape, /*cols=*/false) +
                      ops::spread(pattern, heads_flat(c_src), shape, /*cols=*/true),
                  c_dst);
}

// (10)  S_i = σ_S(L_i), over the edges of row i
Tensor attention(const Pattern& A, const Tensor& L) {
  return ops::row_softmax(A.tensors(), L, A.sym_shape());
}

// (11), (12)  Z^k = S^k X^k
Tensor aggregation(const Pattern& A, const Tensor& S, const Tensor& X) {
  return ops::spmm(A.tensors(X.requires_grad()), S, X, A.sym_shape(), /*t=*/false);
}

// (13)  H = ‖_k σ_E(Z^k)
Tensor hidden_output(const Tensor& Z) {
  return at::elu(check("hidden_output", "Z", Z, 3, "(N, K, d)")).flatten(1);
}

// (14)  H_i = σ_S(1/K Σ_k Z_i^k)
Tensor final_output(const Tensor& Z) {
  return check("final_output", "Z", Z, 3, "(N, K, d)").mean(1).softmax(-1);
}

// (15)  δ′^k = σ′_E(Z^k) ⊙ δ^k;  σ′_E(z) = 1 for z > 0, else e^z
Tensor hidden_delta(const Tensor& Z, const Tensor& delta) {
  TORCH_CHECK_VALUE(delta.dim() == 2 && delta.numel() == Z.numel() && delta.size(0) == Z.size(0),
                    "hidden_delta: delta has shape ", shape_text(delta), " but Z has ", shape_text(Z));
  return Z.clamp_max(0).exp() * delta.reshape(Z.sizes());
}

// (16)  ∂H_i/∂Z_i = diag(H_i) − H_iᵀ H_i
Tensor output_jacobian(const Tensor& H) {
  check("output_jacobian", "H", H, 2, "(N, d)");
  return at::diag_embed(H) - H.unsqueeze(2) * H.unsqueeze(1);
}

// (17)  δ′_i = ∂H_i/∂Z_i δ_i
Tensor output_delta(const Tensor& jacobian, const Tensor& delta) {
  return jacobian.matmul(delta.unsqueeze(-1)).squeeze(-1);
}

// (18)  δ′^k = 1/K δ′
Tensor head_delta(const Tensor& output_delta, int64_t heads) {
  TORCH_CHECK_VALUE(heads > 0, "head_delta: wants at least one head, not ", heads);
  return (output_delta / static_cast<double>(heads)).unsqueeze(1).expand({-1, heads, -1}).contiguous();
}

// (19)  ∂ℒ/∂S^k = δ′^k X^kᵀ on the edges
Tensor attention_gradient(const Pattern& A, const Tensor& delta_prime, const Tensor& X) {
  return ops::sddmm(A.tensors(X.requires_grad()), delta_prime, X, A.sym_shape());
}

// (20)  ∂S_i/∂L_i = diag(S_i) − S_iᵀ S_i, as (K, m, m) for the m edges of row i
Tensor attention_jacobian(const Pattern& A, const Tensor& S, int64_t i) {
  TORCH_CHECK_INDEX(i >= 0 && i < A.rows(), "attention_jacobian: there is no row ", i, " of ", A.rows());
  const int64_t begin = A.indptr()[i].item<int64_t>(), end = A.indptr()[i + 1].item<int64_t>();
  const Tensor row = S.slice(0, begin, end).t();  // (K, m)
  return at::diag_embed(row) - row.unsqueeze(2) * row.unsqueeze(1);
}

// (21)  ∂ℒ/∂L_i = ∂S_i/∂L_i ∂ℒ/∂S_iᵀ = S_i ⊙ (∂ℒ/∂S_i − S_i ∂ℒ/∂S_iᵀ)
Tensor logit_gradient(const Pattern& A, const Tensor& S, const Tensor& dS) {
  const auto pattern = A.tensors();
  const auto shape = A.sym_shape();
  return S * (dS - ops::spread(pattern, ops::row_sum(pattern, S * dS, shape), shape, /*cols=*/false));
}

// (25), (29)  Σ_dst,i = Σ_j Δ_ij
Tensor destination_sum(const Pattern& A, const Tensor& Delta) {
  return heads_of(ops::sum(A.tensors(), heads_flat(Delta), A.sym_shape(), 1), Delta);
}

// (25), (29)  Σ_src,j = Σ_i Δ_ij
Tensor source_sum(const Pattern& A, const Tensor& Delta) {
  return heads_of(ops::sum(A.tensors(true), heads_flat(Delta), A.sym_shape(), 0), Delta);
}

// (34), (35), (39)  ∂ℒ/∂W^k = Hᵀ [ ]^k
Tensor weight_gradient(const Tensor& H, const Tensor& bracket) {
  check("weight_gradient", "H", H, 2, "(N, F)");
  check("weight_gradient", "bracket", bracket, 3, "(N, K, d)");
  return at::tensordot(H, bracket, {0}, {0}).movedim(0, 1).contiguous();
}

}  // namespace gossamer::equations
