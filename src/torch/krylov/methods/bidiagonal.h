// SPDX-License-Identifier: BSD-3-Clause
// Golub and Kahan's bidiagonalisation of A, from r = b - A x on:      β u = A v - α u,   α v = Aᵀ u - β v
//
// With M, a symmetric approximation of the inverse of AᵀA + damp² (tall A) or AAᵀ + damp² (wide A), whichever is the
// smaller, that side's inner product is w·Mw. No factor of M is needed (Arridge, Betcke and Harhanen 2014):
//
//   tall, v·Mv = 1:   β u = A Mv - α u,   α v = Aᵀ u - β v         x is a sum of vectors Mv
//   wide, u·Mu = 1:   β u = A v - α u,    α v = Aᵀ Mu - β v        x = Aᵀ … is the smallest, whatever M is
//
// Such an inner product knows no ‖x‖, so damp is a part of the matrix then: [A; damp] if tall, [A, damp] if wide.
#pragma once
#include "krylov/methods/run.h"

namespace gossamer::krylov {

template <class S>
struct Bidiagonal {
  using Scalars = typename S::Scalars;
  struct Side {
    bool weighted;
    Tensor w = {}, Mw = {};
    Scalars norm = 0.0;  // that w had before it was divided by it
    const Tensor& dual() const { return weighted ? Mw : w; }
  };

  explicit Bidiagonal(Run<S>& given)
      : run(given),
        wide(run.problem.weighs_rows()),
        damp(run.problem.preconditioned ? run.problem.damp : 0.0),
        u{run.problem.preconditioned && wide},
        v{run.problem.preconditioned && !wide} {}

  Run<S>& run;
  const bool wide;
  const double damp;
  Side u, v;

  // What v adds to x.
  Tensor direction() const { return wide && damp != 0 ? v.dual().narrow(0, 0, run.problem.cols) : v.dual(); }

  Steps begin() {
    u.w = wide || damp == 0 ? run.copy(run.r) : at::cat({run.r, run.x * -damp});
    Steps first = replace(u, u.w, 0.0);
    co_await first;
    const Tensor Au = co_await run.At(upper(u.dual(), run.problem.rows));
    v.w = run.copy(transposed(Au));
    Steps second = replace(v, v.w, 0.0);
    co_await second;
  }

  Steps next() {
    const Tensor Av = co_await run.A(upper(v.dual(), run.problem.cols));
    Steps first = replace(u, product(Av), v.norm);
    co_await first;
    const Tensor Au = co_await run.At(upper(u.dual(), run.problem.rows));
    Steps second = replace(v, transposed(Au), u.norm);
    co_await second;
  }

  std::vector<Tensor*> blocks() {
    std::vector<Tensor*> all{&u.w, &v.w};
    if (u.weighted) all.push_back(&u.Mw);
    if (v.weighted) all.push_back(&v.Mw);
    return all;
  }

 private:
  static Tensor upper(const Tensor& w, int64_t rows) { return w.size(0) == rows ? w : w.narrow(0, 0, rows); }
  static Tensor lower(const Tensor& w, int64_t rows) { return w.narrow(0, w.size(0) - rows, rows); }

  // [A; damp] Mv or [A, damp] v, and the transposes, from the product with A.
  Tensor product(const Tensor& Av) const {
    if (damp == 0) return Av;
    return wide ? Av + lower(v.w, run.problem.rows) * damp : at::cat({Av, v.Mw * damp});
  }
  Tensor transposed(const Tensor& Au) const {
    if (damp == 0) return Au;
    return wide ? at::cat({Au, u.Mw * damp}) : Au + lower(u.w, run.problem.cols) * damp;
  }

  // norm · w = product - back · w
  Steps replace(Side& side, Tensor product, Scalars back) {
    Scalars square;
    const auto difference = set<Scalars>(side.w, {{1.0, product}, {-back, side.w}});
    if (side.weighted) {
      run.pass({difference});
      const Tensor Mw = co_await run.M(side.w);
      side.Mw = run.copy(Mw);
      run.pass({dot(side.w, side.Mw, square)});
      if (!run.positive(square, /*or_zero=*/true)) run.fail("M is not positive definite");
    } else {
      run.pass({difference, dot(side.w, side.w, square)});
    }
    side.norm = sqrt(square);
    const Scalars inverse = run.ratio(1.0, side.norm);
    run.pass({set<Scalars>(side.w, {{inverse, side.w}})});
    if (side.weighted) run.pass({set<Scalars>(side.Mw, {{inverse, side.Mw}})});
  }
};

}  // namespace gossamer::krylov
