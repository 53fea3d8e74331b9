// SPDX-License-Identifier: BSD-3-Clause
// Graph attention written in public ops. The fused kernels take their second derivatives and forward mode from here,
// and attention that must also return its weights is computed by it. Let e (nnz, H) be the scores of the edges, X the
// features of the sources and m the mask of the dropout. Then
//
//   s = row_softmax(e),   Z = (m ∘ s) X
//
// The Jacobian J of the softmax is symmetric: J v = s ∘ (v − mean v), where mean v = rowsum(s ∘ v), repeated at each
// entry of its row. Let the inputs have tangents, so that e has the tangent ė and X has Ẋ. Then Z has the tangent
//
//   Ż = (m ∘ J ė) X + (m ∘ s) Ẋ
//
// A Hessian-vector product is the gradient of q = ⟨Ż, G⟩. With P = G Xᵀ and Q = G Ẋᵀ on the pattern:
//
//   q = Σ m ∘ (J ė ∘ P + s ∘ Q)
//   ∂q/∂e = J c,   c = m P ∘ (ė − mean ė) − ė ∘ mean(m P) + m Q
//   ∂q/∂ė = J(m ∘ P),   ∂q/∂X = (m ∘ J ė)ᵀ G
#pragma once
#include <ATen/ATen.h>
#include <gossamer/products.h>

#include <gossamer/kernels/dropout.h>

#include <gossamer/attention.h>
#include <gossamer/reduce.h>
#include "core/csr.h"

namespace gossamer {

// A seed on a device is read by the kernels there. The keys of the entries must live as long as what is returned.
inline Dropout dropout_of(double p, const Tensor& seed, const std::optional<Tensor>& keys = {}) {
  const int64_t* at = seed.const_data_ptr<int64_t>();
  Dropout draws = seed.is_cpu() ? Dropout(p, static_cast<uint64_t>(*at)) : Dropout(p, at);
  if (keys) draws.keys = keys->const_data_ptr<int64_t>();
  return draws;
}

// The arguments of an attention op besides its differentiable inputs.
struct AttentionSettings {
  std::vector<Tensor> pattern;
  std::vector<SymInt> shape;
  double slope, dropout;
  std::optional<Tensor> seed, keys;

  Tensor rows() const { return ops::row_indices(pattern[0], pattern[1]); }
  Dropout draws() const { return dropout > 0 ? dropout_of(dropout, *seed, keys) : Dropout(); }
};

// The softmax of the scores with its dropout, and what its derivatives are made of.
struct EdgeSoftmax {
  const AttentionSettings& settings;
  Tensor s, m;  // m is undefined without dropout.

  EdgeSoftmax(const AttentionSettings& with, const Tensor& e)
      : settings(with), s(ops::row_softmax(settings.pattern, e, settings.shape)) {
    if (settings.dropout > 0)
      m = ops::dropout_mask(settings.pattern[1], e.sym_size(1), settings.dropout, *settings.seed, e.scalar_type(),
                            settings.keys);
  }

  Tensor masked(const Tensor& v) const { return m.defined() ? m * v : v; }  // m ∘ v
  Tensor weights() const { return masked(s); }
  Tensor mean(const Tensor& v) const {
    return ops::spread(settings.pattern, ops::row_sum(settings.pattern, s * v, settings.shape), settings.shape,
                       /*cols=*/false);
  }
  Tensor jacobian_times(const Tensor& v) const { return s * (v - mean(v)); }  // J v
  Tensor masked_dots(const Tensor& G, const Tensor& X) const {                // m ∘ (G Xᵀ)
    return masked(ops::sddmm(settings.pattern, G, X, settings.shape));
  }
  // W X, or Wᵀ X if t, for the matrix W with these values on the pattern.
  Tensor product(const Tensor& values, const Tensor& X, bool t) const {
    return ops::spmm(settings.pattern, values, X, settings.shape, t);
  }

  // Ż.
  Tensor jvp(const Tensor& e_tangent, const Tensor& X, const Tensor& X_tangent) const {
    return product(masked(jacobian_times(e_tangent)), X, false) + product(weights(), X_tangent, false);
  }
  // ∂q/∂e.
  Tensor hvp_of_scores(const Tensor& e_tangent, const Tensor& G, const Tensor& X, const Tensor& X_tangent) const {
    const Tensor mP = masked_dots(G, X);
    return jacobian_times(mP * (e_tangent - mean(e_tangent)) - e_tangent * mean(mP) + masked_dots(G, X_tangent));
  }
  // ∂q/∂X.
  Tensor hvp_of_features(const Tensor& e_tangent, const Tensor& G) const {
    return product(masked(jacobian_times(e_tangent)), G, true);
  }
};

// The derivative of leaky_relu at t, a constant on each side of zero.
inline Tensor leaky_relu_slope(const Tensor& t, double slope) {
  return at::where(t > 0, at::ones_like(t), at::full_like(t, slope));
}

// Tangents and gradients that are undefined count as zeros.
inline Tensor or_zeros(const Tensor& t, const Tensor& like) {
  return t.defined() ? t : at::zeros_like(like);
}

}  // namespace gossamer
