// SPDX-License-Identifier: BSD-3-Clause
// Minimal residuals, for symmetric A, which may be indefinite, and M positive definite. Paige and Saunders (1975).
//
// Lanczos vectors of A M (v = M s / β is the vector, s the residual of the recurrence):
//
//   s_next = A v - (α / β) s - (β / β_before) s_before,   α = v·A v,   β_next² = s_next·M s_next
//
// and a QR factorisation of their tridiagonal matrix by one rotation (c, s) an iteration:
//
//   w_next = (v - ε w_before - δ w) / γ,   x += φ w_next,   r = sn² r - cs φ̄ s_next / β_next
#pragma once
#include "krylov/methods/run.h"

namespace gossamer::krylov {

template <class S>
Steps minres(Run<S>& run) {
  using Scalars = typename S::Scalars;
  Tensor &x = run.x, &r = run.r;
  Tensor s = run.copy(r), before = run.zeros_like(r), v = run.zeros_like(r);
  Tensor w = run.zeros_like(r), w_before = run.zeros_like(r);
  Tensor y = co_await run.M(s);
  Scalars square, alpha, rr;
  run.pass({dot(s, y, square)});
  if (!run.positive(square)) {
    run.fail("M is not positive definite");
    co_return;
  }
  Scalars beta = sqrt(square), beta_before = 0.0, phi_bar = beta, delta_bar = 0.0, epsilon = 0.0, cs = -1.0, sn = 0.0;
  for (;;) {
    const Scalars inverse = run.ratio(1.0, beta);
    run.pass({set<Scalars>(v, {{inverse, y}})});
    const Tensor Av = co_await run.A(v);
    run.pass({set<Scalars>(before, {{1.0, Av}, {-run.ratio(beta, beta_before), before}}), dot(v, before, alpha)});
    run.pass({set<Scalars>(before, {{1.0, before}, {-(alpha * inverse), s}})});
    std::swap(s, before);
    y = co_await run.M(s);
    run.pass({dot(s, y, square)});
    if (!run.positive(square, /*or_zero=*/true)) {
      run.fail("M is not positive definite");
      co_return;
    }
    beta_before = beta, beta = sqrt(square);
    const Scalars epsilon_before = epsilon, delta = cs * delta_bar + sn * alpha,
                  gamma_bar = sn * delta_bar - cs * alpha;
    epsilon = sn * beta, delta_bar = -(cs * beta);
    const Scalars gamma = sqrt(gamma_bar * gamma_bar + beta * beta);
    cs = run.quotient(gamma_bar, gamma), sn = run.quotient(beta, gamma);
    const Scalars phi = cs * phi_bar, by_gamma = run.ratio(1.0, gamma);
    phi_bar = sn * phi_bar;
    run.pass(
        {set<Scalars>(w_before, {{by_gamma, v}, {-(epsilon_before * by_gamma), w_before}, {-(delta * by_gamma), w}}),
         set<Scalars>(x, {{1.0, x}, {run.ratio(phi, 1.0), w_before}})});
    std::swap(w, w_before);
    Scalars norm = abs(phi_bar);
    if (run.problem.preconditioned) {  // φ̄ is the norm of M's; ours is the usual one
      run.pass({set<Scalars>(r, {{sn * sn, r}, {-run.quotient(cs * phi_bar, beta), s}}), dot(r, r, rr)});
      norm = sqrt(rr);
    }
    const bool more = run.go_on(norm);
    co_await run.report();
    if (!more) co_return;
    run.shrink({&s, &before, &v, &w, &w_before, &y}, {&beta, &beta_before, &phi_bar, &delta_bar, &epsilon, &cs, &sn});
  }
}

}  // namespace gossamer::krylov
