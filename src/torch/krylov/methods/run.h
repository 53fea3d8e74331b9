// SPDX-License-Identifier: BSD-3-Clause
// What all methods share: columns that converge one by one, and the residual that is measured, not believed.
//
// A method is a *cycle*: from x and r = b - A x it improves both, column by column, until it believes that every column
// has converged. Then r is computed anew; columns that were believed too soon get another cycle. A column that has
// converged is frozen: its scalars are 0 from then on, and when half of them are, they are taken out of the blocks.
#pragma once
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "core/csr.h"
#include "krylov/methods/problem.h"
#include "krylov/methods/spaces.h"

namespace gossamer::krylov {

template <class S>
class Run : public Krylov {
 public:
  using Scalars = typename S::Scalars;

  explicit Run(const Problem& given)
      : problem(given),
        group_(problem.group),
        b_(problem.b.dim() == 1 ? problem.b.unsqueeze(1) : problem.b),
        k_(b_.size(1)),
        steps_(solve()) {
    b_ = b_.contiguous();
    if (!problem.x0)
      X_ = at::zeros({problem.cols, k_}, b_.options());
    else
      X_ = block_of(*problem.x0, problem.cols, k_, "x0").clone();
    scale();
    iterations_.assign(k_, 0), norms_.assign(k_, NAN), targets_.assign(k_, 0), converged_.assign(k_, 0);
    weights_.assign(k_, 1);
    all_columns();
  }

  // ---- for the driver

  Ask next(const Tensor& answer) override {
    Tensor given = answer;
    TORCH_CHECK_VALUE(given.defined() || asked_ == Ask::done || asked_ == Ask::report, problem.method,
                      ": a product was asked for, and none is given");
    if (given.defined()) {
      TORCH_CHECK_TYPE(given.scalar_type() == b_.scalar_type(), problem.method, ": a product is ", given.scalar_type(),
                       ", not ", b_.scalar_type(), " as b is");
      const int64_t rows = asked_ == Ask::A ? problem.rows : asked_ == Ask::At ? problem.cols : question.size(0);
      given = block_of(given, rows, asked_k_, "a product");
    }
    asked_ = steps_.next(given, question);
    if (asked_ == Ask::done || asked_ == Ask::report) return asked_;
    asked_k_ = question.size(1);
    if (problem.b.dim() == 1) question = question.squeeze(1);
    return asked_;
  }

  Tensor solution() const override {
    const Tensor X = scaling_.defined() ? X_ / scaling_ : X_;
    return problem.b.dim() == 1 ? X.squeeze(1) : X;
  }

  Tensor info() const override {
    Numbers all(iterations_);
    for (int64_t c = 0; c < k_; ++c) all.push_back(norms_[c] / scales_[c]);
    all.insert(all.end(), converged_.begin(), converged_.end());
    const Tensor t = at::tensor(at::ArrayRef<double>(all), at::kDouble).reshape({3, k_});
    return problem.b.dim() == 1 ? t.squeeze(1) : t;
  }

  std::string failure() const override { return failure_; }
  double target(int64_t column) const override { return targets_[column] / scales_[column]; }

  // ---- for a method's cycle

  const Problem problem;
  Tensor x, r;  // of the columns at work

  Question A(const Tensor& v) { return {Ask::A, v}; }
  Question At(const Tensor& u) { return {Ask::At, u}; }
  Question M(const Tensor& v) { return {Ask::M, v, !problem.preconditioned}; }
  Question report() { return {Ask::report, x, !problem.reports}; }

  void pass(const std::vector<Statement<Scalars>>& statements) const { S::pass(statements, group_); }
  Tensor copy(const Tensor& block) const { return S::in_place ? block.clone() : block; }
  Tensor zeros_like(const Tensor& block) const { return at::zeros_like(block); }

  // a / b for columns that are not frozen, 0 for the others; and for all columns.
  Scalars ratio(const Scalars& a, const Scalars& b) const { return a.over(b, active_); }
  Scalars quotient(const Scalars& a, const Scalars& b) const { return a.over(b, Mask(active_.size(), 1)); }

  // An iteration is done, and these are believed to be the norms of its residuals. False: the cycle is over.
  bool go_on(const Scalars& norm) { return go_on(norm.numbers(active_.size())); }
  bool go_on(const Numbers& numbers) {
    ++total_;
    for (size_t c = 0; c < active_.size(); ++c) {
      if (!active_[c]) continue;
      iterations_[ids_[c]] = static_cast<double>(total_), norms_[ids_[c]] = numbers[c];
      if (!std::isfinite(numbers[c])) return fail("a number that is not finite came up");
      active_[c] = !is_small(numbers[c], c);
    }
    return any_active() && total_ < problem.maxiter;
  }
  bool any_active() const { return std::find(active_.begin(), active_.end(), 1) != active_.end(); }

  // lsmr with M: `norm` has M in its inner product. As a norm without M it is believed to be what it was when both were
  // known last, times as much as `norm` has changed since.
  void weigh(const Scalars& norm) {
    const Numbers numbers = abs(norm).numbers(active_.size());
    for (size_t c = 0; c < active_.size(); ++c)
      if (active_[c]) weights_[ids_[c]] = problem.preconditioned && numbers[c] > 0 ? norms_[ids_[c]] / numbers[c] : 1;
  }
  Numbers weighed(const Scalars& norm) const {
    Numbers numbers = abs(norm).numbers(active_.size());
    for (size_t c = 0; c < active_.size(); ++c) numbers[c] *= weights_[ids_[c]];
    return numbers;
  }
  bool would_do(const Scalars& norm) const {
    const Numbers numbers = weighed(norm);
    for (size_t c = 0; c < active_.size(); ++c)
      if (active_[c] && is_small(numbers[c], c)) return true;
    return false;
  }
  Steps measure_at_work();  // solve.h

  bool fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
    return false;
  }
  // Whether the numbers of all columns at work are positive (or zero, if so many are allowed).
  bool positive(const Scalars& number, bool or_zero = false) const {
    const Numbers numbers = number.numbers(active_.size());
    for (size_t c = 0; c < active_.size(); ++c)
      if (active_[c] && !(numbers[c] > 0 || (or_zero && numbers[c] == 0))) return false;
    return true;
  }
  bool nonzero(const Scalars& number) const { return positive(number * number); }
  void ended_by_restart() { restarted_ = true; }

  // Takes frozen columns out of x, r and these blocks and scalars, if they are half of them or more.
  void shrink(const std::vector<Tensor*>& blocks, const std::vector<Scalars*>& scalars) {
    if constexpr (S::in_place) {
      const auto keep = worth_keeping();
      if (keep.empty() || 2 * keep.size() > active_.size()) return;
      put_back();
      const Tensor at = at::tensor(keep);
      x = x.index_select(1, at), r = r.index_select(1, at);
      for (Tensor* block : blocks) *block = block->index_select(1, at);
      for (Scalars* s : scalars) {
        Numbers kept;
        for (const int64_t c : keep) kept.push_back(s->at(c));
        *s = Scalars(std::move(kept));
      }
      std::vector<int64_t> ids;
      Mask active;
      for (const int64_t c : keep) ids.push_back(ids_[c]), active.push_back(active_[c]);
      ids_ = ids, active_ = active;
    }
  }

 private:
  Steps solve();  // solve.h
  Steps measure();
  Steps cycle();

  // Squares of very small and very large numbers are 0 and infinite. Such columns are solved times a power of two,
  // which rounds nothing.
  void scale() {
    scales_.assign(k_, 1);
    if (k_ == 0) return;
    const bool wide = b_.scalar_type() == at::kDouble;
    const double enough = wide ? 1e60 : 1e15;
    const int most = wide ? 1000 : 120;  // the exponent of a power that is finite, and so is its inverse
    Tensor largest = at::zeros({k_}, at::kDouble);
    if (b_.size(0) > 0) largest.copy_(b_.detach().abs().amax(0));
    group_.max_(largest);
    for (int64_t c = 0; c < k_; ++c) {
      const double size = ptr<double>(largest)[c];
      if (!std::isfinite(size) || size == 0 || (size < enough && size > 1 / enough)) continue;
      scales_[c] = std::exp2(std::clamp(-std::ilogb(size), -most, most));
    }
    if (std::all_of(scales_.begin(), scales_.end(), [](double s) { return s == 1; })) return;
    scaling_ = at::tensor(at::ArrayRef<double>(scales_), at::kDouble).to(b_.options());
    b_ = b_ * scaling_, X_ = X_ * scaling_;
  }

  bool any_nonzero(const Tensor& column) const {
    Tensor any = column.ne(0).any().to(at::kCPU, at::kLong).reshape({1});
    group_.max_(any);
    return any.template item<int64_t>() != 0;
  }

  // ‖column‖ of all ranks together.
  Numbers column_norms(const Tensor& block) const {
    const Tensor numbers = block.detach().to(at::kCPU, at::kDouble).contiguous();
    std::vector<kernels::ExactSum> squares(numbers.size(1));
    kernels::dot_exact(torch_pool(), numbers.size(0), numbers.size(1), ptr<double>(numbers), ptr<double>(numbers),
                       squares.data());
    Numbers norms = distributed::total(group_, squares);
    for (double& norm : norms) norm = std::sqrt(norm);
    return norms;
  }

  Tensor block_of(const Tensor& t, int64_t rows, int64_t k, const char* what) const {
    TORCH_CHECK_VALUE(t.dim() >= 1 && t.dim() <= 2 && t.size(0) == rows && t.numel() == rows * k, problem.method, ": ",
                      what, " has shape ", shape_text(t), ", not (", rows, ",) or (", rows, ", ", k, ")");
    return t.reshape({rows, k}).contiguous();
  }
  // The columns that have not converged and, if there are several, some that have: products are fastest with four
  // columns or a multiple.
  std::vector<int64_t> worth_keeping() const {
    auto left = std::count(active_.begin(), active_.end(), 1);
    auto room = left > 1 ? (4 - left % 4) % 4 : 0;
    std::vector<int64_t> keep;
    for (size_t c = 0; c < active_.size(); ++c)
      if (active_[c] || room-- > 0) keep.push_back(static_cast<int64_t>(c));
    return keep;
  }
  // A little more than asked: r is computed anew in the end.
  bool is_small(double norm, size_t c) const { return norm <= 0.95 * targets_[ids_[c]]; }
  void all_columns() {
    ids_.resize(k_);
    for (int64_t c = 0; c < k_; ++c) ids_[c] = c;
    active_.assign(k_, 1);
  }
  void put_back() {
    if (static_cast<int64_t>(ids_.size()) == k_)
      X_ = S::in_place ? x.clone() : x;
    else
      X_.index_copy_(1, at::tensor(ids_), x);
  }

  distributed::Group group_;
  Tensor b_, X_, R_;  // of all columns, times `scaling_`, where it is defined
  Tensor scaling_;
  int64_t k_;
  std::vector<int64_t> ids_;  // the columns at work
  Mask active_;               // of these, the ones that have not converged
  Numbers scales_, iterations_, norms_, targets_, converged_, weights_;
  int64_t total_ = 0;
  bool restarted_ = false;
  std::string failure_;
  Ask asked_ = Ask::done;
  int64_t asked_k_ = 0;
  Steps steps_;
};

// out = Σ scale · block, in terms as few as the kernel takes.
template <class Scalars>
Statement<Scalars> set(Tensor& out, std::vector<Term<Scalars>> terms) {
  return {&out, std::move(terms), nullptr, nullptr, nullptr};
}

}  // namespace gossamer::krylov
