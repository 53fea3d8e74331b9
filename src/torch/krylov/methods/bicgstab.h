// SPDX-License-Identifier: BSD-3-Clause
// The stabilised biconjugate gradient method, preconditioned from the right. Van der Vorst (1992).
//
//   v = A M p,   α = ρ / (r₀·v),   s = r - α v,   t = A M s,   ω = t·s / t·t
//   x += α M p + ω M s,   r = s - ω t,   β = (r₀·r / ρ) (α / ω),   p = r + β (p - ω v)
//
// Two products and five passes an iteration. Where it breaks down (ρ, r₀·v or ω is 0) it begins again with another r₀.
#pragma once
#include "krylov/methods/run.h"

namespace gossamer::krylov {

template <class S>
Steps bicgstab(Run<S>& run) {
  using Scalars = typename S::Scalars;
  Tensor &x = run.x, &r = run.r;
  Tensor shadow = run.copy(r), p = run.copy(r);
  Scalars rho, next, sv, ts, tt, rr;
  run.pass({dot(r, r, rho)});
  for (;;) {
    const Tensor Mp = co_await run.M(p);
    const Tensor v = co_await run.A(Mp);
    run.pass({dot(shadow, v, sv)});
    if (!run.nonzero(sv)) co_return;
    const Scalars alpha = run.ratio(rho, sv);
    run.pass({set<Scalars>(r, {{1.0, r}, {-alpha, v}})});
    const Tensor Ms = co_await run.M(r);
    const Tensor t = co_await run.A(Ms);
    run.pass({dot(t, r, ts), dot(t, t, tt)});
    const Scalars omega = run.ratio(ts, tt);
    run.pass({set<Scalars>(x, {{1.0, x}, {alpha, Mp}, {omega, Ms}}), set<Scalars>(r, {{1.0, r}, {-omega, t}}),
              dot(r, r, rr), dot(shadow, r, next)});
    const bool more = run.go_on(sqrt(rr));
    co_await run.report();
    if (!more || !run.nonzero(next) || !run.nonzero(omega)) co_return;
    const Scalars beta = run.ratio(next, rho) * run.ratio(alpha, omega);
    run.pass({set<Scalars>(p, {{1.0, r}, {beta, p}, {-(beta * omega), v}})});
    rho = next;
    run.shrink({&shadow, &p}, {&rho});
  }
}

}  // namespace gossamer::krylov
