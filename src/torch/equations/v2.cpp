// SPDX-License-Identifier: BSD-3-Clause
// GATv2, e_ij = a·σ_L(X_dst,i + X_src,j): what differs from v1, and a layer of it.
#include <ATen/ATen.h>

#include <gossamer/equations.h>
#include <gossamer/products.h>

namespace gossamer::equations {

// (7), (9)  L = aᵀ σ_L(C_dst ⊕ C_src)
Tensor logits_v2(const Tensor& a, const Tensor& sum, double slope) {
  return (a * at::leaky_relu(sum, slope)).sum(-1);
}

// (27)  C′ = a ⊙ σ′_L(C_dst ⊕ C_src)
Tensor slopes_v2(const Tensor& a, const Tensor& sum, double slope) {
  return a * slopes_v1(sum, slope);
}

// (28)  Δ_ij = ∂ℒ/∂L_ij · C′_ij
Tensor edge_gradient_v2(const Tensor& C_prime, const Tensor& dL) {
  return C_prime * dL.unsqueeze(-1);
}

// (30)  ∂ℒ/∂a = Σ_ij ∂ℒ/∂L_ij · σ_L(C_dst,i + C_src,j)
Tensor vector_gradient_v2(const Tensor& dL, const Tensor& sum, double slope) {
  return (dL.unsqueeze(-1) * at::leaky_relu(sum, slope)).sum(0);
}

// [ ] of (37), (39)  Σ_src + Sᵀ δ′
Tensor bracket_v2(const Pattern& A, const Tensor& S, const Tensor& delta_prime, const Tensor& Sigma_src) {
  return Sigma_src + ops::spmm(A.tensors(true), S, delta_prime, A.sym_shape(), /*t=*/true);
}

// (36) – (38)  ∂ℒ/∂H^{l−1} = Σ_k (Σ_dst^k W_dst^kᵀ + [ ]^k W_src^kᵀ)
Tensor feature_gradient_v2(const Tensor& Sigma_dst, const Tensor& W_dst, const Tensor& bracket, const Tensor& W_src) {
  return at::tensordot(Sigma_dst, W_dst, {1, 2}, {0, 2}) + at::tensordot(bracket, W_src, {1, 2}, {0, 2});
}

ForwardV2 forward(const Pattern& A, const Tensor& H, const ParametersV2& p, bool last, double slope) {
  ForwardV2 f;
  f.X_dst = combination(H, p.W_dst);
  f.X_src = combination(H, p.W_src);
  f.sum = outer_sum(A, coefficients_v2(f.X_dst), coefficients_v2(f.X_src));
  f.L = logits_v2(p.a, f.sum, slope);
  f.S = attention(A, f.L);
  f.Z = aggregation(A, f.S, f.X_src);
  f.H = last ? final_output(f.Z) : hidden_output(f.Z);
  return f;
}

BackwardV2 backward(const Pattern& A, const Tensor& H, const ParametersV2& p, const ForwardV2& f, const Tensor& delta,
                    bool last, double slope) {
  BackwardV2 b;
  b.delta = delta;
  if (last) {
    b.jacobian = output_jacobian(f.H);
    b.output_delta = output_delta(b.jacobian, delta);
  }
  b.delta_prime = last ? head_delta(b.output_delta, f.Z.size(1)) : hidden_delta(f.Z, delta);
  b.dS = attention_gradient(A, b.delta_prime, f.X_src);
  b.dL = logit_gradient(A, f.S, b.dS);
  b.C_prime = slopes_v2(p.a, f.sum, slope);
  b.Delta = edge_gradient_v2(b.C_prime, b.dL);
  b.Sigma_dst = destination_sum(A, b.Delta);
  b.Sigma_src = source_sum(A, b.Delta);
  b.da = vector_gradient_v2(b.dL, f.sum, slope);
  b.bracket = bracket_v2(A, f.S, b.delta_prime, b.Sigma_src);
  b.dW_dst = weight_gradient(H, b.Sigma_dst);
  b.dW_src = weight_gradient(H, b.bracket);
  b.dH = feature_gradient_v2(b.Sigma_dst, p.W_dst, b.bracket, p.W_src);
  return b;
}

Named ParametersV2::named() const {
  return {{"W_dst", W_dst}, {"W_src", W_src}, {"a", a}};
}

Named ForwardV2::named() const {
  return {{"X_dst", X_dst}, {"X_src", X_src}, {"sum", sum}, {"L", L}, {"S", S}, {"Z", Z}, {"H", H}};
}

Named BackwardV2::named() const {
  return {{"delta", delta},
          {"jacobian", jacobian},
          {"output_delta", output_delta},
          {"delta_prime", delta_prime},
          {"dS", dS},
          {"dL", dL},
          {"C_prime", C_prime},
          {"Delta_edge", Delta},
          {"Sigma_dst", Sigma_dst},
          {"Sigma_src", Sigma_src},
          {"da", da},
          {"bracket", bracket},
          {"dW_dst", dW_dst},
          {"dW_src", dW_src},
          {"dH", dH}};
}

}  // namespace gossamer::equations
