// SPDX-License-Identifier: BSD-3-Clause
// Graph attention, equation by equation: every named quantity of J. Gould and K. K. Parhi, "Backpropagation Computation
// for Training Graph Attention Networks", one small function each, in public ops. The plain path: slow, nothing fused,
// everything visible. docs/equations.md lists the 39 equations and where the text of the paper slips.
//
// Shapes, for N nodes, E edges, K heads, F features in, d features out of a head:
//
//   H (N, F)      W (K, F, d)      a (K, d)      X, Z, δ′, Σ of v2 (N, K, d)      c, Σ of v1 (N, K)
//   on the edges, in the order of the pattern's entries: L, S, ∂ℒ/∂S, ∂ℒ/∂L, C′ and Δ of v1 (E, K); of v2 (E, K, d)
//
// Row i of the pattern A holds the edges that point at node i: entry (i, j) is the edge from j to i.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <gossamer/sparse_matrix.h>

namespace gossamer::equations {

inline constexpr double leaky_slope = 0.2;  // of σ_L where it is negative; σ_E is the ELU with α = 1

// Forward.
Tensor convolution(const SparseMatrix& A, const Tensor& H, const Tensor& W);       // (1)  W (F, d)
Tensor combination(const Tensor& H, const Tensor& W);                              // (2, 3)  X
Tensor coefficients_v1(const Tensor& X, const Tensor& a);                          // (4)  c of v1
Tensor coefficients_v2(const Tensor& X);                                           // (5)  C of v2 is X
Tensor outer_sum(const Pattern& A, const Tensor& c_dst, const Tensor& c_src);      // c_dst ⊕ c_src
Tensor logits_v1(const Tensor& sum, double slope = leaky_slope);                   // (6, 8)  e, L
Tensor logits_v2(const Tensor& a, const Tensor& sum, double slope = leaky_slope);  // (7, 9)  e, L
Tensor attention(const Pattern& A, const Tensor& L);                               // (10)  S
Tensor aggregation(const Pattern& A, const Tensor& S, const Tensor& X);            // (11, 12)  Z
Tensor hidden_output(const Tensor& Z);                                             // (13)  H
Tensor final_output(const Tensor& Z);                                              // (14)  H of the last

// Backward of the activation.
Tensor hidden_delta(const Tensor& Z, const Tensor& delta);         // (15)  δ′
Tensor output_jacobian(const Tensor& H);                           // (16)  (N, d, d)
Tensor output_delta(const Tensor& jacobian, const Tensor& delta);  // (17)  (N, d)
Tensor head_delta(const Tensor& output_delta, int64_t heads);      // (18)  δ′

// Backward of the attention.
Tensor attention_gradient(const Pattern& A, const Tensor& delta_prime, const Tensor& X);     // (19)  ∂ℒ/∂S
Tensor attention_jacobian(const Pattern& A, const Tensor& S, int64_t i);                     // (20)  of row i
Tensor logit_gradient(const Pattern& A, const Tensor& S, const Tensor& dS);                  // (21)  ∂ℒ/∂L
Tensor slopes_v1(const Tensor& sum, double slope = leaky_slope);                             // (22, 23)  C′
Tensor edge_gradient_v1(const Tensor& C_prime, const Tensor& dL);                            // (24)  Δ
Tensor slopes_v2(const Tensor& a, const Tensor& sum, double slope = leaky_slope);            // (27)  C′
Tensor edge_gradient_v2(const Tensor& C_prime, const Tensor& dL);                            // (28)  Δ
Tensor destination_sum(const Pattern& A, const Tensor& Delta);                               // (25, 29)  Σ_dst
Tensor source_sum(const Pattern& A, const Tensor& Delta);                                    // (25, 29)  Σ_src
Tensor vector_gradient_v1(const Tensor& X, const Tensor& Sigma);                             // (26)  ∂ℒ/∂a
Tensor vector_gradient_v2(const Tensor& dL, const Tensor& sum, double slope = leaky_slope);  // (30)  ∂ℒ/∂a

// Backward of the combination. The brackets are shared by both gradients.
Tensor bracket_v1(const Pattern& A, const Tensor& S, const Tensor& delta_prime, const Tensor& Sigma_dst,
                  const Tensor& a_dst, const Tensor& Sigma_src, const Tensor& a_src);  // [ ] of (32, 35)
Tensor bracket_v2(const Pattern& A, const Tensor& S, const Tensor& delta_prime,
                  const Tensor& Sigma_src);                          // of (37, 39)
Tensor feature_gradient_v1(const Tensor& bracket, const Tensor& W);  // (31 – 33)  ∂ℒ/∂H
Tensor feature_gradient_v2(const Tensor& Sigma_dst, const Tensor& W_dst, const Tensor& bracket,
                           const Tensor& W_src);                 // (36 – 38)  ∂ℒ/∂H
Tensor weight_gradient(const Tensor& H, const Tensor& bracket);  // (34, 35, 39)  ∂ℒ/∂W

// A layer: all of the above, in order.

using Named = std::vector<std::pair<std::string, Tensor>>;

struct ParametersV1 {
  Tensor W, a_dst, a_src;
  Named named() const;
};
struct ParametersV2 {
  Tensor W_dst, W_src, a;
  Named named() const;
};

struct ForwardV1 {
  Tensor X, c_dst, c_src, sum, L, S, Z, H;
  Named named() const;
};
struct ForwardV2 {
  Tensor X_dst, X_src, sum, L, S, Z, H;
  Named named() const;
};

// δ = ∂ℒ/∂H of the layer's output comes in, dH = ∂ℒ/∂H of its input goes out. jacobian and output_delta belong to the
// last layer and are undefined elsewhere.
struct BackwardV1 {
  Tensor delta, jacobian, output_delta, delta_prime, dS, dL, C_prime, Delta, Sigma_dst, Sigma_src, da_dst, da_src,
      bracket, dW, dH;
  Named named() const;
};
struct BackwardV2 {
  Tensor delta, jacobian, output_delta, delta_prime, dS, dL, C_prime, Delta, Sigma_dst, Sigma_src, da, bracket, dW_dst,
      dW_src, dH;
  Named named() const;
};

// `last`: the output layer (average, softmax) instead of a hidden one (ELU, concatenate).
ForwardV1 forward(const Pattern& A, const Tensor& H, const ParametersV1& p, bool last, double slope = leaky_slope);
ForwardV2 forward(const Pattern& A, const Tensor& H, const ParametersV2& p, bool last, double slope = leaky_slope);
BackwardV1 backward(const Pattern& A, const Tensor& H, const ParametersV1& p, const ForwardV1& f, const Tensor& delta,
                    bool last, double slope = leaky_slope);
BackwardV2 backward(const Pattern& A, const Tensor& H, const ParametersV2& p, const ForwardV2& f, const Tensor& delta,
                    bool last, double slope = leaky_slope);

// A network: ℒ = -1/|T| Σ_{i ∈ T} log H^L[i, y_i] over the nodes T of `mask`, and δ^L = ∂ℒ/∂H^L.
Tensor loss(const Tensor& H, const Tensor& y, const Tensor& mask);
Tensor loss_gradient(const Tensor& H, const Tensor& y, const Tensor& mask);

// Every quantity of every layer: "loss", then "layer1.W", "layer1.X", … by the names of the structs.
Named network(const Pattern& A, const Tensor& H, const Tensor& y, const Tensor& mask,
              const std::vector<ParametersV1>& layers, double slope = leaky_slope);
Named network(const Pattern& A, const Tensor& H, const Tensor& y, const Tensor& mask,
              const std::vector<ParametersV2>& layers, double slope = leaky_slope);

}  // namespace gossamer::equations
