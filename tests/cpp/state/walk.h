// SPDX-License-Identifier: BSD-3-Clause
// A pool of matrices, each with a dense twin that has the same graph of derivatives, and the actions upon them.
#pragma once
#include <gossamer/gossamer.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gs = gossamer;
using torch::Tensor;

// The values that a matrix owns and the leaf of its twin.
struct Base {
  Tensor values, dense, mask;
};

// What shares the values of a base is a view of it (its twin is computed anew); anything else has a twin of its own.
struct Held {
  gs::SparseMatrix A;
  Tensor mask, twin;
  std::vector<std::shared_ptr<Base>> bases;
  bool view = false, turned = false, solvable = false, stale = false;

  Tensor dense() const {
    if (!view) return twin;
    return turned ? bases[0]->dense.t() : bases[0]->dense;
  }
};

struct HeldFactor {
  gs::linalg::Factor factor;
  Tensor dense;
  std::shared_ptr<Base> base;
};

class Walk {
 public:
  explicit Walk(uint64_t seed) : draw_(seed) {
    torch::manual_seed(static_cast<int64_t>(seed));
    build();
    build_solvable();
  }
  ~Walk() { at::set_num_threads(threads_); }

  // Does something and says what. What is wrong then is in wrong().
  std::string step() {
    static const std::vector<std::pair<std::string, void (Walk::*)()>> actions = {
        {"build", &Walk::build},       {"build_solvable", &Walk::build_solvable},
        {"copy", &Walk::copy},         {"transpose", &Walk::transpose},
        {"slice", &Walk::slice},       {"multiply", &Walk::multiply},
        {"add", &Walk::add},           {"differentiate", &Walk::differentiate},
        {"change", &Walk::change},     {"drop", &Walk::drop},
        {"threads", &Walk::threads},   {"solve", &Walk::solve},
        {"factorize", &Walk::factors}, {"elsewhere", &Walk::elsewhere},
    };
    const auto& [name, action] = actions[below(actions.size())];
    (this->*action)();
    for (const Held& held : pool_) compare(held, "after " + name);
    return name;
  }
  const std::string& wrong() const { return wrong_; }

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(draw_); }
  int64_t size() { return below(2) ? 6 : 4; }
  Held& any() { return pool_[below(pool_.size())]; }
  void hold(Held held) {
    compare(held, "new");
    pool_.push_back(std::move(held));
    if (pool_.size() > 9) pool_.erase(pool_.begin());
  }

  void close(const Tensor& got, const Tensor& wanted, const std::string& what) {
    if (got.sizes() != wanted.sizes())
      wrong_ = what + ": another shape";
    else if (wanted.numel() &&
             !((got - wanted).abs().max().item<double>() <= 1e-9 * (1 + wanted.abs().max().item<double>())))
      wrong_ = what + ": other numbers than the twin's";
  }
  // A transpose without arrays is looked at by a product, and stays so.
  void compare(const Held& held, const std::string& what) {
    const Tensor dense = held.dense().detach();
    if (held.A.original()) {
      close(held.A.matmul(torch::eye(held.A.cols(), torch::kDouble)).detach(), dense, what);
      return;
    }
    close(held.A.detach().to_dense(), dense, what);
    const Tensor stored = held.A.with_values(torch::ones({held.A.nnz()}, torch::kDouble)).to_dense() != 0;
    if (!stored.equal(held.mask)) wrong_ = what + ": other entries are stored than in the twin";
  }

  void keep_leaf(const Tensor& dense, const Tensor& mask, bool grad, bool solvable) {
    const Tensor places = mask.nonzero();
    gs::SparseMatrix A = gs::from_coo(places.select(1, 0), places.select(1, 1), dense.index({mask}), sizes(dense));
    if (below(2)) A = A.with_index_type(torch::kLong);
    A.requires_grad_(grad);
    auto base = std::make_shared<Base>(Base{A.values(), dense.clone().requires_grad_(grad), mask});
    hold({A, mask, {}, {base}, /*view=*/true, /*turned=*/false, solvable});
  }
  static gs::Shape sizes(const Tensor& dense) { return {dense.size(0), dense.size(1)}; }

  Held derived(gs::SparseMatrix A, Tensor twin, Tensor mask, const Held& x, const Held& y) {
    Held held{std::move(A), std::move(mask), std::move(twin), x.bases};
    for (const auto& base : y.bases)
      if (std::find(held.bases.begin(), held.bases.end(), base) == held.bases.end()) held.bases.push_back(base);
    held.stale = x.stale || y.stale;
    return held;
  }

  void build() {
    const int64_t m = size(), n = size();
    const Tensor mask = torch::rand({m, n}) < std::array{0.0, 0.3, 0.6}[below(3)];
    keep_leaf(torch::randn({m, n}, torch::kDouble) * mask, mask, below(2), false);
  }
  void build_solvable() {
    const int64_t n = size();
    Tensor dense = torch::randn({n, n}, torch::kDouble) * (torch::rand({n, n}) < 0.4);
    if (below(2)) dense = dense + dense.t();
    dense.diagonal().copy_(1 + dense.abs().sum(0) + dense.abs().sum(1));
    keep_leaf(dense, dense != 0, below(2), true);
  }

  void copy() {
    Held held = any();
    settle(held);
    switch (below(4)) {
      case 0:
        break;  // shares everything
      case 1:
        held = derived(held.A.clone(), held.dense().clone(), held.mask, held, held);
        break;
      case 2:
        return keep_leaf(held.dense().detach().clone(), held.mask, below(2), held.solvable);
      default:  // the arrays by themselves, in a pattern of their own; the values are shared
        if (held.A.original()) return;
        held.A = gs::SparseMatrix(held.A.indptr().clone(), held.A.indices().clone(), held.A.values(), held.A.shape());
    }
    hold(std::move(held));
  }

  void transpose() {
    Held held = any();
    settle(held);
    const bool solvable = held.solvable;
    if (held.view)
      held.turned = !held.turned;
    else
      held.twin = held.twin.t();
    held.A = held.A.T();
    held.mask = held.mask.t();
    held.solvable = solvable;
    hold(std::move(held));
  }
  // A transpose whose values somebody has asked for has its own, and sees no change any more.
  static void settle(Held& held) {
    if (!held.view || held.A.original() || held.A.values().is_same(held.bases[0]->values)) return;
    held.twin = held.dense().clone();
    held.view = false;
  }

  void slice() {
    Held& held = any();
    const Tensor rows = torch::randint(held.A.rows(), {size()}), cols = torch::randint(held.A.cols(), {size()});
    const int64_t k = static_cast<int64_t>(below(5)) - 2;
    const auto keep = [&](gs::SparseMatrix A, const auto& f) {
      hold(derived(std::move(A), f(held.dense()), f(held.mask), Held(held), Held(held)));
    };
    if (below(2))
      keep(held.A.submatrix(rows, cols), [&](const Tensor& d) { return d.index({rows}).index_select(1, cols); });
    else
      keep(held.A.tril(k), [&](const Tensor& d) { return d.tril(k); });
  }

  bool small(const Held& x, const Held& y) const {
    const auto largest = [](const Held& held) { return held.dense().detach().abs().max().item<double>(); };
    return largest(x) * largest(y) < 1e8;
  }
  void multiply() {
    const Held x = any(), y = any();
    if (x.A.cols() != y.A.rows() || !small(x, y)) return;
    const Tensor mask = x.mask.to(torch::kDouble).matmul(y.mask.to(torch::kDouble)) > 0;
    hold(derived(x.A.matmul(y.A), x.dense().matmul(y.dense()), mask, x, y));
  }
  void add() {
    const Held x = any(), y = any();
    if (x.A.shape() != y.A.shape() || !small(x, y)) return;
    if (below(2))
      hold(derived(gs::spadd(x.A, y.A, 1, -2), x.dense() - 2 * y.dense(), x.mask | y.mask, x, y));
    else
      hold(derived(gs::hadamard(x.A, y.A), x.dense() * y.dense(), x.mask & y.mask, x, y));
  }

  void change() {
    Held& held = any();
    if (!held.view) return;
    settle(held);
    if (!held.view) return;
    const auto base = held.bases[0];
    for (Held& other : pool_) {
      settle(other);
      const bool uses = std::find(other.bases.begin(), other.bases.end(), base) != other.bases.end();
      other.stale = other.stale || (uses && !other.view);
    }
    factors_.erase(std::remove_if(factors_.begin(), factors_.end(), [&](auto& f) { return f.base == base; }),
                   factors_.end());
    const torch::NoGradGuard no_grad;
    base->values.mul_(2);
    base->dense.mul_(2);
  }
  void drop() {
    if (pool_.size() > 2) pool_.erase(pool_.begin() + static_cast<int64_t>(below(pool_.size())));
    if (!factors_.empty() && below(2)) factors_.pop_back();
  }
  void threads() { at::set_num_threads(1 + static_cast<int>(below(3))); }

  // Another thread looks at everything, and asks transposes for their arrays.
  void elsewhere() {
    std::thread other([this] {
      for (const Held& held : pool_) {
        compare(held, "in another thread");
        if (below(2)) held.A.values();
      }
    });
    other.join();
  }

  void differentiate();
  void solve();
  void factors();

  std::mt19937_64 draw_;
  std::vector<Held> pool_;
  std::vector<HeldFactor> factors_;
  std::string wrong_;
  int threads_ = at::get_num_threads();
};

// The gradients of a number that depends on all entries, and those of the sum of their sines.
inline void Walk::differentiate() {
  const Held held = any();
  const double scale = 1 / (1 + held.dense().detach().abs().max().item<double>());
  const Tensor X = torch::ones({held.A.cols(), 2}, torch::kDouble);
  const Tensor ours = (held.A.matmul(X) * scale).sin().sum() + held.A.sum(0).sum() * scale;
  const Tensor theirs = (held.dense().matmul(X) * scale).sin().sum() + held.dense().sum() * scale;
  close(ours.detach(), theirs.detach(), "loss");
  if (ours.requires_grad() != theirs.requires_grad()) wrong_ = "one of matrix and twin is differentiated";
  if (!ours.requires_grad() || held.stale) return;
  for (const auto& base : held.bases) {
    if (!base->values.requires_grad()) continue;
    const auto gradient = [](const Tensor& y, const Tensor& leaf) {
      const Tensor g = torch::autograd::grad({y}, {leaf}, {}, true, true, /*allow_unused=*/true)[0];
      return g.defined() ? g : torch::zeros_like(leaf);
    };
    const Tensor got = gradient(ours, base->values), wanted = gradient(theirs, base->dense).index({base->mask});
    close(got.detach(), wanted.detach(), "gradient");
    if (!got.requires_grad() || !wanted.requires_grad()) continue;
    close(gradient(got.sin().sum(), base->values).detach(),
          gradient(wanted.sin().sum(), base->dense).index({base->mask}).detach(), "second derivative");
  }
}

inline void Walk::solve() {
  const Held held = any();
  if (!held.solvable) return;
  const Tensor b = torch::ones({held.A.rows(), 2}, torch::kDouble), D = held.dense();
  const Tensor x = gs::linalg::solve(held.A, b), y = torch::linalg_solve(D, b);
  close(x.detach(), y.detach(), "solve");
  close(gs::linalg::solve_triangular(held.A, b).detach(), torch::linalg_solve(D.tril(), b).detach(), "triangular");
  if (!held.view || !x.requires_grad()) return;
  const auto& base = held.bases[0];
  const Tensor got = torch::autograd::grad({x.sin().sum()}, {base->values}, {}, true)[0];
  const Tensor wanted = torch::autograd::grad({y.sin().sum()}, {base->dense}, {}, true)[0];
  close(got, wanted.index({base->mask}), "gradient of a solve");
}

// Makes a factor, and uses one that was made before, perhaps of a matrix that is gone.
inline void Walk::factors() {
  const Held held = any();
  if (held.solvable && held.view)
    factors_.push_back(
        {gs::linalg::factorize(held.A, below(2) ? "lu" : "auto"), held.dense().detach().clone(), held.bases[0]});
  if (factors_.size() > 4) factors_.erase(factors_.begin());
  if (factors_.empty()) return;
  const HeldFactor& used = factors_[below(factors_.size())];
  const Tensor b = torch::ones({used.dense.size(0)}, torch::kDouble);
  const bool t = below(2);
  close(used.factor.solve(b, t).detach(), torch::linalg_solve(t ? used.dense.t() : used.dense, b), "factor.solve");
  close(used.factor.logdet().detach(), std::get<1>(torch::slogdet(used.dense)), "logdet");
}
