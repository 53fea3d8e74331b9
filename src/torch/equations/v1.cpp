// SPDX-License-Identifier: BSD-3-Clause
// The original graph attention, e_ij = σ_L(a_dst·X_i + a_src·X_j): what differs from v2, and a layer of it.
#include <ATen/ATen.h>

#include <gossamer/equations.h>
#include <gossamer/products.h>

namespace gossamer::equations {

// (6), (8)  L = σ_L(c_dst ⊕ c_src)
Tensor logits_v1(const Tensor& sum, double slope) {
  return at::leaky_relu(sum, slope);
}

// (22), (23)  C′ = σ′_L(c_dst ⊕ c_src)
Tensor slopes_v1(const Tensor& sum, double slope) {
  return at::where(sum > 0, at::ones_like(sum), at::full_like(sum, slope));
}

// (24)  Δ = C′ ⊙ ∂ℒ/∂L
Tensor edge_gradient_v1(const Tensor& C_prime, const Tensor& dL) {
  return C_prime * dL;
}

// (26)  ∂ℒ/∂a^k = X^kᵀ Σ^k
Tensor vector_gradient_v1(const Tensor& X, const Tensor& Sigma) {
  return (X * Sigma.unsqueeze(-1)).sum(0);
}

// [ ] of (32), (35)  Σ_dst a_dstᵀ + Σ_src a_srcᵀ + Sᵀ δ′
Tensor bracket_v1(const Pattern& A, const Tensor& S, const Tensor& delta_prime, const Tensor& Sigma_dst,
                  const Tensor& a_dst, const Tensor& Sigma_src, const Tensor& a_src) {
  return Sigma_dst.unsqueeze(-1) * a_dst + Sigma_src.unsqueeze(-1) * a_src +
         ops::spmm(A.tensors(true), S, delta_prime, A.sym_shape(), /*t=*/true);
}

// (31) – (33)  ∂ℒ/∂H^{l−1} = Σ_k [ ]^k W^kᵀ
Tensor feature_gradient_v1(const Tensor& bracket, const Tensor& W) {
  return at::tensordot(bracket, W, {1, 2}, {0, 2});
}

ForwardV1 forward(const Pattern& A, const Tensor& H, const ParametersV1& p, bool last, double slope) {
  ForwardV1 f;
  f.X = combination(H, p.W);
  f.c_dst = coefficients_v1(f.X, p.a_dst);
  f.c_src = coefficients_v1(f.X, p.a_src);
  f.sum = outer_sum(A, f.c_dst, f.c_src);
  f.L = logits_v1(f.sum, slope);
  f.S = attention(A, f.L);
  f.Z = aggregation(A, f.S, f.X);
  f.H = last ? final_output(f.Z) : hidden_output(f.Z);
  return f;
}

BackwardV1 backward(const Pattern& A, const Tensor& H, const ParametersV1& p, const ForwardV1& f, const Tensor& delta,
                    bool last, double slope) {
  BackwardV1 b;
  b.delta = delta;
  if (last) {
    b.jacobian = output_jacobian(f.H);
    b.output_delta = output_delta(b.jacobian, delta);
  }
  b.delta_prime = last ? head_delta(b.output_delta, f.Z.size(1)) : hidden_delta(f.Z, delta);
  b.dS = attention_gradient(A, b.delta_prime, f.X);
  b.dL = logit_gradient(A, f.S, b.dS);
  b.C_prime = slopes_v1(f.sum, slope);
  b.Delta = edge_gradient_v1(b.C_prime, b.dL);
  b.Sigma_dst = destination_sum(A, b.Delta);
  b.Sigma_src = source_sum(A, b.Delta);
  b.da_dst = vector_gradient_v1(f.X, b.Sigma_dst);
  b.da_src = vector_gradient_v1(f.X, b.Sigma_src);
  b.bracket = bracket_v1(A, f.S, b.delta_prime, b.Sigma_dst, p.a_dst, b.Sigma_src, p.a_src);
  b.dW = weight_gradient(H, b.bracket);
  b.dH = feature_gradient_v1(b.bracket, p.W);
  return b;
}

Named ParametersV1::named() const {
  return {{"W", W}, {"a_dst", a_dst}, {"a_src", a_src}};
}

Named ForwardV1::named() const {
  return {{"X", X}, {"c_dst", c_dst}, {"c_src", c_src}, {"sum", sum}, {"L", L}, {"S", S}, {"Z", Z}, {"H", H}};
}

Named BackwardV1::named() const {
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
          {"da_dst", da_dst},
          {"da_src", da_src},
          {"bracket", bracket},
          {"dW", dW},
          {"dH", dH}};
}

}  // namespace gossamer::equations
