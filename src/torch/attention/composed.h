// SPDX-License-Identifier: BSD-3-Clause
// Graph attention in public ops: second derivatives and forward mode of the fused kernels, and attention whose weights
// are wanted. With scores e (nnz, H), dropout m and Z = (m ∘ s) X:
//
//   s = row_softmax(e),   J v = s ∘ (v − mean v),   mean v = rowsum(s ∘ v) at each entry of the row
//
// J is the Jacobian of the softmax, symmetric. With P = G Xᵀ on the pattern: de = J(m ∘ P). For a second gradient, let
// the inputs move by u, so that e moves by é and X by U, and Q = G Uᵀ on the pattern; the loss moves by
//
//   q = ⟨Ź, G⟩ = Σ m ∘ (J é ∘ P + s ∘ Q),   and   de q = J c,   c = m P ∘ (é − mean é) − é ∘ mean(m P) + m Q
//
// while é itself has the gradient J(m ∘ P) = de.
#pragma once
#include <ATen/ATen.h>
#include <gossamer/products.h>

#include <gossamer/kernels/dropout.h>

#include <gossamer/attention.h>
#include <gossamer/reduce.h>
#include "core/csr.h"

namespace gossamer {

// What all forms of attention are given besides their tensors.
struct Attention {
  std::vector<Tensor> pattern;
  std::vector<SymInt> shape;
  double slope, dropout;
  std::optional<Tensor> seed;

  Tensor rows() const { return ops::row_indices(pattern[0], pattern[1]); }
  Dropout host_dropout() const {
    return dropout > 0 ? Dropout(dropout, static_cast<uint64_t>(seed->item<int64_t>())) : Dropout();
  }
};

struct EdgeSoftmax {
  const Attention& how;
  Tensor s, m;  // m is undefined without dropout

  EdgeSoftmax(const Attention& given, const Tensor& e) : how(given), s(ops::row_softmax(how.pattern, e, how.shape)) {
    if (how.dropout > 0) m = ops::dropout_mask(how.pattern[1], e.sym_size(1), how.dropout, *how.seed, e.scalar_type());
  }

  Tensor dropped(const Tensor& v) const { return m.defined() ? m * v : v; }
  Tensor weights() const { return dropped(s); }
  Tensor mean(const Tensor& v) const {
    return ops::spread(how.pattern, ops::row_sum(how.pattern, s * v, how.shape), how.shape, /*cols=*/false);
  }
  Tensor jacobian_times(const Tensor& v) const { return s * (v - mean(v)); }
  Tensor dots(const Tensor& G, const Tensor& X) const { return dropped(ops::sddmm(how.pattern, G, X, how.shape)); }
  Tensor times(const Tensor& w, const Tensor& X, bool t) const { return ops::spmm(how.pattern, w, X, how.shape, t); }

  // Ź, the tangent of Z.
  Tensor moved(const Tensor& e_moved, const Tensor& X, const Tensor& U) const {
    return times(dropped(jacobian_times(e_moved)), X, false) + times(weights(), U, false);
  }
  // de q.
  Tensor second(const Tensor& e_moved, const Tensor& G, const Tensor& X, const Tensor& U) const {
    const Tensor mP = dots(G, X);
    return jacobian_times(mP * (e_moved - mean(e_moved)) - e_moved * mean(mP) + dots(G, U));
  }
};

// The derivatives of leaky_relu; it has no second one.
inline Tensor slope_at(const Tensor& t, double slope) {
  return at::where(t > 0, at::ones_like(t), at::full_like(t, slope));
}

// Undefined tangents and gradients count as zeros.
inline Tensor or_zeros(const Tensor& t, const Tensor& like) {
  return t.defined() ? t : at::zeros_like(like);
}

}  // namespace gossamer
