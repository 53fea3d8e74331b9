// SPDX-License-Identifier: BSD-3-Clause
// LSMR: min ‖b - A x‖² + damp² ‖x‖², the smallest x if there are several. Fong and Saunders (2011).
//
// Golub and Kahan's bidiagonalisation,        β u = A v - α u,   α v = Aᵀ u - β v,
// and two QR factorisations of it, by three rotations an iteration; ζ̄ is the norm of Aᵀ(b - A x) - damp² x.
#pragma once
#include "krylov/methods/run.h"

namespace gossamer::krylov {

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
  Scalars square;
  run.pass({dot(run.r, run.r, square)});
  Scalars beta = sqrt(square);
  Tensor u = run.copy(run.r);
  run.pass({set<Scalars>(u, {{run.ratio(1.0, beta), u}})});
  const Tensor Atu = co_await run.At(u);
  run.pass({dot(Atu, Atu, square)});
  Scalars alpha = sqrt(square);
  Tensor v = run.copy(Atu);
  run.pass({set<Scalars>(v, {{run.ratio(1.0, alpha), v}})});
  Tensor h = run.copy(v), h_bar = run.zeros_like(v);
  const Scalars damp = run.problem.damp;
  Scalars zeta_bar = alpha * beta, alpha_bar = alpha, rho = 1.0, rho_bar = 1.0, c_bar = 1.0, s_bar = 0.0;
  for (;;) {
    const Tensor Av = co_await run.A(v);
    run.pass({set<Scalars>(u, {{1.0, Av}, {-alpha, u}}), dot(u, u, square)});
    beta = sqrt(square);
    run.pass({set<Scalars>(u, {{run.ratio(1.0, beta), u}})});
    const Tensor Atv = co_await run.At(u);
    run.pass({set<Scalars>(v, {{1.0, Atv}, {-beta, v}}), dot(v, v, square)});
    alpha = sqrt(square);

    const auto hat = rotation(run, alpha_bar, damp);
    const auto first = rotation(run, hat.r, beta);
    const Scalars theta = first.s * alpha, theta_bar = s_bar * first.r;
    alpha_bar = first.c * alpha;
    const auto second = rotation(run, c_bar * first.r, theta);
    const Scalars zeta = second.c * zeta_bar;
    zeta_bar = -(second.s * zeta_bar);
    const Scalars back = run.ratio(theta_bar * first.r, rho * rho_bar), step = run.ratio(zeta, first.r * second.r);
    run.pass({set<Scalars>(v, {{run.ratio(1.0, alpha), v}}), set<Scalars>(h_bar, {{1.0, h}, {-back, h_bar}}),
              set<Scalars>(x, {{1.0, x}, {step, h_bar}}),
              set<Scalars>(h, {{1.0, v}, {-run.ratio(theta, first.r), h}})});
    rho = first.r, rho_bar = second.r, c_bar = second.c, s_bar = second.s;
    const bool more = run.go_on(abs(zeta_bar));
    co_await run.report();
    if (!more) co_return;
    run.shrink({&u, &v, &h, &h_bar}, {&alpha, &zeta_bar, &alpha_bar, &rho, &rho_bar, &c_bar, &s_bar});
  }
}

}  // namespace gossamer::krylov
