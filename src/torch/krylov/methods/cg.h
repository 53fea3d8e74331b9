// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients, for symmetric positive definite A and M. Hestenes and Stiefel (1952).
//
//   q = A p,   α = r·z / p·q,   x += α p,   r -= α q,   z = M r,   β = r·z / (r·z before),   p = z + β p
//
// A product, and three passes over blocks an iteration: p·q; r and r·r; x and p.
#pragma once
#include "krylov/methods/run.h"

namespace gossamer::krylov {

template <class S>
Steps cg(Run<S>& run) {
  using Scalars = typename S::Scalars;
  Tensor &x = run.x, &r = run.r;
  Tensor z = co_await run.M(r);
  Tensor p = run.copy(z);
  Scalars rz, pq, rr;
  run.pass({dot(r, z, rz)});
  for (;;) {
    if (!run.positive(rz)) {
      run.fail(run.problem.preconditioned ? "M is not positive definite" : "a number that is not finite came up");
      co_return;
    }
    const Tensor q = co_await run.A(p);
    run.pass({dot(p, q, pq)});
    if (!run.positive(pq)) {
      run.fail("A is not positive definite");
      co_return;
    }
    const Scalars alpha = run.ratio(rz, pq);
    run.pass({set<Scalars>(r, {{1.0, r}, {-alpha, q}}), dot(r, r, rr)});
    const bool more = run.go_on(sqrt(rr));
    if (more) {
      z = co_await run.M(r);
      Scalars next = rr;
      if (run.problem.preconditioned) run.pass({dot(r, z, next)});
      const Scalars beta = run.ratio(next, rz);
      run.pass({set<Scalars>(x, {{1.0, x}, {alpha, p}}), set<Scalars>(p, {{1.0, z}, {beta, p}})});
      rz = next;
    } else {
      run.pass({set<Scalars>(x, {{1.0, x}, {alpha, p}})});
    }
    co_await run.report();
    if (!more) co_return;
    run.shrink({&p}, {&rz});
  }
}

}  // namespace gossamer::krylov
