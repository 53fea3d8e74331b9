// SPDX-License-Identifier: BSD-3-Clause
// MINRES for the shifted transform, w with (T - θ_i) w_i = r_i beside the known eigenvectors: all rows at once, each
// with its own θ. It needs no definite operator, so the values may be anywhere in the spectrum. Lanczos vectors v of
// T - θ in the inner product of M, and Givens rotations that keep the least residual |φ|:
//
//   β' v' = (T - θ) v - α v - β v_old        d = (v - δ d_1 - ε d_2) / γ        w ← w + φ d
//
// The residual it ends with is computed anew, and the iteration begun again from there until that is a rounding error.
#pragma once
#include <ATen/ATen.h>
#include <gossamer/convergence.h>

#include <limits>

#include "signals/signals.h"
#include "spectral/transform.h"

namespace gossamer {

namespace minres_steps {

constexpr double tiny = std::numeric_limits<double>::min();

struct Shifted {
  const SpectralTransform& T;
  const Tensor &theta, &X, &MX;

  Tensor project(const Tensor& v) const { return without_components(v, MX, X); }
  Tensor times(const Tensor& v, const Tensor& Mv) const { return project(T.apply(v, Mv).sub(v.mul(theta))); }
  Tensor norm(const Tensor& v) const { return row_products(v, T.mass(v)).clamp_min(0).sqrt(); }
};

// w for the right side r; rows whose residual is below `least` are finished.
inline Tensor iterate(const Shifted& H, const Tensor& r, const Tensor& least, int64_t steps) {
  Tensor beta = H.norm(r), v = r.div(beta.clamp_min(tiny)), v_old = at::zeros_like(r);
  Tensor phi_bar = beta, cosine = at::full_like(beta, -1.0), sine = at::zeros_like(beta);
  Tensor delta_bar = at::zeros_like(beta), epsilon = at::zeros_like(beta), coupling = at::zeros_like(beta);
  Tensor w = at::zeros_like(r), d = at::zeros_like(r), d_old = at::zeros_like(r);
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor active = phi_bar.abs().gt(least);
    if (!active.any().item<bool>()) break;
    throw_if_interrupted();
    const Tensor Mv = H.T.mass(v);
    Tensor next = H.times(v, Mv).sub(v_old.mul(coupling));
    const Tensor alpha = row_products(next, Mv);
    next = H.project(next.sub(v.mul(alpha)));
    coupling = H.norm(next);
    const Tensor epsilon_old = epsilon, delta = cosine.mul(delta_bar).add(sine.mul(alpha));
    const Tensor gamma_bar = sine.mul(delta_bar).sub(cosine.mul(alpha));
    epsilon = sine.mul(coupling);
    delta_bar = cosine.mul(coupling).neg();
    const Tensor gamma = gamma_bar.square().add(coupling.square()).sqrt().clamp_min(tiny);
    cosine = gamma_bar.div(gamma);
    sine = coupling.div(gamma);
    const Tensor phi = cosine.mul(phi_bar);
    phi_bar = sine.mul(phi_bar);
    const Tensor d_new = v.sub(d_old.mul(epsilon_old)).sub(d.mul(delta)).div(gamma);
    d_old = d;
    d = d_new;
    w = at::where(active, w.add(d.mul(phi)), w);
    v_old = v;
    v = next.div(coupling.clamp_min(tiny));
  }
  return w;
}

}  // namespace minres_steps

// r, w: (c, n); theta: (c, 1); X, MX: (k, n), which r is orthogonal to. Throws ConvergenceError.
inline Tensor minres(const SpectralTransform& T, const Tensor& theta, const Tensor& r, const Tensor& X,
                     const Tensor& MX) {
  const minres_steps::Shifted H{T, theta, X, MX};
  const Tensor size = H.norm(r);
  const int64_t steps = T.sigma() ? 1000 : 20000;
  Tensor w = at::zeros_like(r), residual = r, best = size;
  for (int cycle = 0; cycle < 4; ++cycle) {
    const Tensor better = w.add(minres_steps::iterate(H, residual, size.mul(1e-15), steps));
    residual = H.project(r.sub(H.times(better, T.mass(better))));
    const Tensor now = H.norm(residual);
    const bool improved = now.lt(best.mul(0.1)).any().item<bool>();
    w = at::where(now.lt(best), better, w);
    best = at::minimum(now, best);
    residual = H.project(r.sub(H.times(w, T.mass(w))));
    if (!improved || best.le(size.mul(1e-14)).all().item<bool>()) break;
  }
  if (!best.le(size.mul(1e-9)).all().item<bool>())
    throw_not_converged("eigsh",
                        "the derivative of the vectors does not converge: perhaps k cuts a space of equal, or nearly "
                        "equal, eigenvalues; ask for all of them, and give sigma");
  return w;
}

}  // namespace gossamer
