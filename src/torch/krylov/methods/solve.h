// SPDX-License-Identifier: BSD-3-Clause
// The loop around the cycles of a method: measure, decide, begin again. See run.h.
#pragma once
#include "krylov/methods/bicgstab.h"
#include "krylov/methods/cg.h"
#include "krylov/methods/gmres.h"
#include "krylov/methods/lsmr.h"
#include "krylov/methods/minres.h"
#include "krylov/methods/run.h"

namespace gossamer::krylov {

template <class S>
Steps Run<S>::cycle() {
  if (problem.method == "cg") return cg(*this);
  if (problem.method == "minres") return minres(*this);
  if (problem.method == "gmres") return gmres(*this);
  if (problem.method == "bicgstab") return bicgstab(*this);
  return lsmr(*this);
}

// R = b - A x, and its norms; of the normal equations, Aᵀ R - damp² x, for lsmr.
template <class S>
Steps Run<S>::measure() {
  const bool at_zero = total_ == 0 && !problem.x0;
  if (at_zero) {
    R_ = b_.clone();
  } else {
    const Tensor Ax = co_await A(X_);
    R_ = b_ - Ax;
  }
  if (problem.method != "lsmr") {
    norms_ = column_norms(R_);
  } else {
    const Tensor AtR = co_await At(R_);
    norms_ = column_norms(problem.damp == 0 ? AtR : AtR - X_ * (problem.damp * problem.damp));
  }
}

// The norms of the normal equations, of the columns at work.
template <class S>
Steps Run<S>::measure_at_work() {
  const Tensor Ax = co_await A(x);
  const bool all = static_cast<int64_t>(ids_.size()) == k_;
  const Tensor R = (all ? b_ : b_.index_select(1, at::tensor(ids_))) - Ax;
  const Tensor AtR = co_await At(R);
  const Numbers norms = column_norms(AtR - x * (problem.damp * problem.damp));
  for (size_t c = 0; c < ids_.size(); ++c)
    if (active_[c]) norms_[ids_[c]] = norms[c];
}

template <class S>
Steps Run<S>::solve() {
  Tensor about = b_;
  if (problem.method == "lsmr") about = co_await At(b_);
  targets_ = column_norms(about);
  Tensor zero = at::empty({k_}, b_.options().dtype(at::kBool));
  for (int64_t c = 0; c < k_; ++c) {
    zero[c].fill_(targets_[c] == 0);
    if (problem.method == "lsmr" && targets_[c] < 1e-140 && any_nonzero(about.select(1, c))) {  // else b is scaled
      fail("squares of A's entries are too small for float64: scale A");
      co_return;
    }
    targets_[c] = std::max(problem.rtol * targets_[c], problem.atol * scales_[c]);
  }
  X_ = at::where(zero, at::zeros_like(X_), X_);  // A x = 0 has the solution 0, which no tolerance would reach
  Numbers before(k_, INFINITY);
  for (int stagnant = 0;;) {
    Steps measuring = measure();
    co_await measuring;
    double progress = 0;  // the worst of any column
    std::vector<int64_t> open;
    for (int64_t c = 0; c < k_; ++c) {
      converged_[c] = std::isfinite(norms_[c]) && norms_[c] <= targets_[c];
      if (!std::isfinite(norms_[c])) fail("a number that is not finite came up");
      if (!converged_[c]) open.push_back(c), progress = std::max(progress, norms_[c] / before[c]);
    }
    if (open.empty()) failure_.clear();
    if (open.empty() || !failure_.empty()) co_return;
    if (total_ >= problem.maxiter) {
      fail("maxiter is reached");
      co_return;
    }
    stagnant = progress < (restarted_ ? 1 - 1e-12 : 0.5) ? 0 : stagnant + 1;
    if (stagnant == 2 || (problem.damp != 0 && total_ > 0)) {  // a damped problem cannot go on from another x than 0
      fail(problem.method == "gmres" ? "the residual does not become smaller: a larger restart may help"
                                     : "the residual does not become smaller");
      co_return;
    }
    before = norms_, restarted_ = false;
    all_columns();
    for (int64_t c = 0; c < k_; ++c) active_[c] = !converged_[c];
    x = copy(X_), r = R_;
    shrink({}, {});
    Steps cycling = cycle();
    co_await cycling;
    put_back();
  }
}

}  // namespace gossamer::krylov
