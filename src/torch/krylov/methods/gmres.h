// SPDX-License-Identifier: BSD-3-Clause
// Generalised minimal residuals with restarts, preconditioned from the right. Saad and Schultz (1986).
//
//   A M V_j = V_{j+1} H,   y = argmin ‖β e₁ - H y‖,   x += M V y
//
// V orthonormal by Gram and Schmidt, done twice; H made triangular by one rotation an iteration, whose last right-hand
// side is the norm of the residual. A cycle is what lies between two restarts.
#pragma once
#include "krylov/methods/run.h"

namespace gossamer::krylov {

// h = Vᵀ w (and, before that, w -= V remove, in the same pass).
template <class S>
std::vector<typename S::Scalars> project(Run<S>& run, std::vector<Tensor>& V, Tensor& w,
                                         const std::vector<typename S::Scalars>& remove, typename S::Scalars* square) {
  using Scalars = typename S::Scalars;
  std::vector<Statement<Scalars>> pass;
  for (size_t i = 0; i < remove.size(); i += 3) {
    std::vector<Term<Scalars>> terms{{1.0, w}};
    for (size_t j = i; j < std::min(i + 3, remove.size()); ++j) terms.push_back({-remove[j], V[j]});
    pass.push_back(set<Scalars>(w, std::move(terms)));
  }
  std::vector<Scalars> h(square ? 0 : V.size());
  for (size_t i = 0; i < h.size(); ++i) pass.push_back(dot(V[i], w, h[i]));
  if (square) pass.push_back(dot(w, w, *square));
  run.pass(pass);
  return h;
}

// y with R y = g, R being the triangle whose column j is R[j].
template <class S>
std::vector<typename S::Scalars> back_substitute(Run<S>& run, const std::vector<std::vector<typename S::Scalars>>& R,
                                                 const std::vector<typename S::Scalars>& g) {
  std::vector<typename S::Scalars> y(R.size());
  for (size_t j = R.size(); j-- > 0;) {
    y[j] = g[j];
    for (size_t l = j + 1; l < R.size(); ++l) y[j] = y[j] - R[l][j] * y[l];
    y[j] = run.quotient(y[j], R[j][j]);
  }
  return y;
}

template <class S>
Steps gmres(Run<S>& run) {
  using Scalars = typename S::Scalars;
  Scalars square;
  run.pass({dot(run.r, run.r, square)});
  std::vector<Scalars> g{sqrt(square)}, cs, sn;
  std::vector<std::vector<Scalars>> R;
  std::vector<Tensor> V{run.zeros_like(run.r)};
  run.pass({set<Scalars>(V[0], {{run.ratio(1.0, g[0]), run.r}})});
  for (bool more = true; more;) {
    const Tensor z = co_await run.M(V.back());
    const Tensor Az = co_await run.A(z);
    Tensor w = run.copy(Az);
    std::vector<Scalars> h = project(run, V, w, {}, nullptr);
    const std::vector<Scalars> again = project(run, V, w, h, nullptr);
    project(run, V, w, again, &square);
    for (size_t i = 0; i < h.size(); ++i) h[i] = h[i] + again[i];
    for (size_t i = 0; i + 1 < h.size(); ++i) {
      const Scalars up = cs[i] * h[i] + sn[i] * h[i + 1];
      h[i + 1] = cs[i] * h[i + 1] - sn[i] * h[i], h[i] = up;
    }
    const Scalars below = sqrt(square), length = sqrt(h.back() * h.back() + square);
    cs.push_back(run.quotient(h.back(), length)), sn.push_back(run.quotient(below, length));
    h.back() = length;
    R.push_back(h);
    const Scalars last = g.back();
    g.back() = cs.back() * last;
    g.push_back(-(sn.back() * last));
    more = run.go_on(abs(g.back()));
    co_await run.report();
    if (more && static_cast<int64_t>(R.size()) == run.problem.restart) run.ended_by_restart(), more = false;
    if (!more) break;
    V.push_back(w);
    run.pass({set<Scalars>(V.back(), {{run.ratio(1.0, below), w}})});
  }
  Tensor u = run.zeros_like(run.r);
  std::vector<Scalars> y = back_substitute(run, R, g);
  for (Scalars& s : y) s = -s;
  project(run, V, u, y, &square);
  const Tensor Mu = co_await run.M(u);
  run.pass({set<Scalars>(run.x, {{1.0, run.x}, {1.0, Mu}})});
}

}  // namespace gossamer::krylov
