// SPDX-License-Identifier: BSD-3-Clause
// LSMR: min ‖b - A x‖² + damp² ‖x‖², the smallest x if there are several. Fong and Saunders (2011).
//
// A is bidiagonalised (bidiagonal.h), and that is factored twice by QR, by three rotations an iteration; ζ̄ is the norm
// of Aᵀ(b - A x) - damp² x, with M in its inner product.
#pragma once
#include "krylov/methods/bidiagonal.h"

namespace gossamer::krylov {

constexpr int most_measures = 4;  // of one cycle

// A rotation that takes (a, b) to (r, 0).
template <class Scalars>
struct Rotation {
  Scalars c, s, r;
};
template <class S>
Rotation<typename S::Scalars> rotation(const Run<S>& run, const typename S::Scalars& a, const typename S::Scalars& b) {
  const auto r = sqrt(a * a + b * b);
  return {run.quotient(a, r), run.quotient(b, r), r};
}

template <class S>
Steps lsmr(Run<S>& run) {
  using Scalars = typename S::Scalars;
  Tensor& x = run.x;
  Bidiagonal<S> B(run);
  Steps beginning = B.begin();
  co_await beginning;
  Scalars &alpha = B.v.norm, &beta = B.u.norm;
  Tensor h = run.copy(B.direction()), h_bar = run.zeros_like(h);
  const Scalars damp = run.problem.preconditioned ? 0.0 : run.problem.damp;
  Scalars zeta_bar = alpha * beta, alpha_bar = alpha, rho = 1.0, rho_bar = 1.0, c_bar = 1.0, s_bar = 0.0;
  run.weigh(zeta_bar);
  for (int measures = 0;;) {
    Steps advancing = B.next();
    co_await advancing;
    if (!run.failure().empty()) co_return;

    const auto hat = rotation(run, alpha_bar, damp);
    const auto first = rotation(run, hat.r, beta);
    const Scalars theta = first.s * alpha, theta_bar = s_bar * first.r;
    alpha_bar = first.c * alpha;
    const auto second = rotation(run, c_bar * first.r, theta);
    const Scalars zeta = second.c * zeta_bar;
    zeta_bar = -(second.s * zeta_bar);
    const Scalars back = run.ratio(theta_bar * first.r, rho * rho_bar), step = run.ratio(zeta, first.r * second.r);
    const Tensor v = B.direction();
    run.pass({set<Scalars>(h_bar, {{1.0, h}, {-back, h_bar}}), set<Scalars>(x, {{1.0, x}, {step, h_bar}}),
              set<Scalars>(h, {{1.0, v}, {-run.ratio(theta, first.r), h}})});
    rho = first.r, rho_bar = second.r, c_bar = second.c, s_bar = second.s;
    // Where ζ̄ would do, the norm is measured; if that does not, the two have drifted apart.
    if (run.problem.preconditioned && run.would_do(zeta_bar) && measures++ < most_measures) {
      Steps measuring = run.measure_at_work();
      co_await measuring;
      run.weigh(zeta_bar);
    }
    const bool more = run.go_on(run.weighed(zeta_bar));
    co_await run.report();
    if (!more) co_return;
    std::vector<Tensor*> blocks = B.blocks();
    blocks.insert(blocks.end(), {&h, &h_bar});
    run.shrink(blocks, {&alpha, &beta, &zeta_bar, &alpha_bar, &rho, &rho_bar, &c_bar, &s_bar});
  }
}

}  // namespace gossamer::krylov
