// SPDX-License-Identifier: BSD-3-Clause
// The two ways to compute with blocks (n, k) of columns and scalars (k,) that methods are written for:
//
//   Fused      numbers alone: passes of kernels/krylov.h in place, scalars in float64
//   Recorded   ordinary differentiable ops of torch, for those who learn through the iterations (unrolled)
//
// Rows may be on many processes: dots are over all of them. They are exact (kernels/dot_exact.h), which costs float64
// nothing to speak of, so that a solve has the same bits for every partition, and those of one process. float32 pays
// for it while it stays in the caches, and has ordinary dots where there is no group.
#pragma once
#include <ATen/ATen.h>
#include <gossamer/distributed_solve.h>
#include <gossamer/kernels/krylov.h>
#include <gossamer/products.h>
#include <gossamer/reduce.h>

#include <cmath>
#include <initializer_list>
#include <vector>

#include "core/launch.h"
#include "distributed/solve/exact.h"

namespace gossamer::krylov {

using at::Tensor;
using Mask = std::vector<char>;
using Numbers = std::vector<double>;

// A scalar a column; one number stands for all columns.
class FusedScalars {
 public:
  FusedScalars(double number = 0) : numbers_{number} {}
  explicit FusedScalars(Numbers numbers) : numbers_(std::move(numbers)) {}

  double at(size_t c) const { return numbers_[numbers_.size() == 1 ? 0 : c]; }
  size_t size() const { return numbers_.size(); }
  Numbers numbers(size_t k) const { return numbers_.size() == k ? numbers_ : Numbers(k, numbers_[0]); }
  double* resize(size_t k) { return numbers_.resize(k), numbers_.data(); }

  template <class F>
  friend FusedScalars map(const F& f, const FusedScalars& a, const FusedScalars& b) {
    Numbers result(std::max(a.size(), b.size()));
    for (size_t c = 0; c < result.size(); ++c) result[c] = f(a.at(c), b.at(c));
    return FusedScalars(std::move(result));
  }
  FusedScalars operator-() const {
    return map([](double x, double y) { return y - x; }, *this, 0.0);
  }
  friend FusedScalars operator+(const FusedScalars& a, const FusedScalars& b) { return map(std::plus<>(), a, b); }
  friend FusedScalars operator-(const FusedScalars& a, const FusedScalars& b) { return map(std::minus<>(), a, b); }
  friend FusedScalars operator*(const FusedScalars& a, const FusedScalars& b) { return map(std::multiplies<>(), a, b); }
  friend FusedScalars sqrt(const FusedScalars& a) {
    return map([](double x, double) { return std::sqrt(x); }, a, a);
  }
  friend FusedScalars abs(const FusedScalars& a) {
    return map([](double x, double) { return std::fabs(x); }, a, a);
  }
  // This / b where the mask has the column and b is not 0, and 0 elsewhere.
  FusedScalars over(const FusedScalars& b, const Mask& where) const {
    Numbers result(where.size());
    for (size_t c = 0; c < result.size(); ++c) result[c] = where[c] && b.at(c) != 0 ? at(c) / b.at(c) : 0.0;
    return FusedScalars(std::move(result));
  }

 private:
  Numbers numbers_;
};

class RecordedScalars {
 public:
  RecordedScalars(double number = 0) : t_(at::scalar_tensor(number, at::kDouble)) {}
  explicit RecordedScalars(Tensor t) : t_(std::move(t)) {}

  const Tensor& tensor() const { return t_; }
  Numbers numbers(size_t k) const {
    const Tensor host = t_.detach().to(at::kCPU, at::kDouble).expand({static_cast<int64_t>(k)}).contiguous();
    return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + k};
  }
  using S = RecordedScalars;
  S operator-() const { return S(-t_); }
  friend S operator+(const S& a, const S& b) { return S(a.t_ + b.t_); }
  friend S operator-(const S& a, const S& b) { return S(a.t_ - b.t_); }
  friend S operator*(const S& a, const S& b) { return S(a.t_ * b.t_); }
  // The derivative at 0, where a column has nothing left to do, is 0 and not infinite.
  friend S sqrt(const S& a) {
    const Tensor zero = a.t_ == 0;
    return S(at::where(zero, at::zeros_like(a.t_), at::where(zero, at::ones_like(a.t_), a.t_).sqrt()));
  }
  friend S abs(const S& a) { return S(a.t_.abs()); }
  S over(const S& b, const Mask& where) const {
    const auto k = static_cast<int64_t>(where.size());
    const Tensor mask = at::tensor(at::ArrayRef<int64_t>(std::vector<int64_t>(where.begin(), where.end()))) != 0;
    const Tensor use = mask.to(b.t_.device()) & (b.t_ != 0);
    const Tensor quotient = t_ / at::where(use, b.t_, at::ones_like(b.t_));
    return S(at::where(use, quotient, at::zeros_like(quotient)).expand({k}));
  }

 private:
  Tensor t_;
};

template <class Scalars>
struct Term {
  Scalars scale;
  const Tensor& block;
};

// out = Σ scale · block, or dot = Σ_i u v of each column.
template <class Scalars>
struct Statement {
  Tensor* out = nullptr;
  std::vector<Term<Scalars>> terms;
  const Tensor *u = nullptr, *v = nullptr;
  Scalars* dot = nullptr;
};
template <class Scalars>
Statement<Scalars> dot(const Tensor& u, const Tensor& v, Scalars& result) {
  return {nullptr, {}, &u, &v, &result};
}

struct Fused {
  using Scalars = FusedScalars;
  static constexpr bool in_place = true;

  static void pass(const std::vector<Statement<Scalars>>& statements, const distributed::Group& group) {
    const Tensor& like = statements[0].out ? *statements[0].out : *statements[0].u;
    const int64_t n = like.size(0), k = like.size(1);
    if (like.scalar_type() == at::kFloat)
      run<float>(statements, n, k, group);
    else
      run<double>(statements, n, k, group);
  }

 private:
  template <class T>
  static void run(const std::vector<Statement<Scalars>>& statements, int64_t n, int64_t k,
                  const distributed::Group& group) {
    std::vector<kernels::Statement<T>> typed;
    std::vector<Numbers> scales;
    scales.reserve(statements.size() * kernels::most_terms);  // so that pointers into it stay
    for (const auto& s : statements) {
      kernels::Statement<T> t;
      if (s.dot) {
        t.v[0] = s.u->const_data_ptr<T>(), t.v[1] = s.v->const_data_ptr<T>(), t.dots = s.dot->resize(k);
      } else {
        t.out = s.out->mutable_data_ptr<T>();
        for (const auto& term : s.terms) {
          scales.push_back(term.scale.numbers(k));
          t.v[t.terms] = term.block.template const_data_ptr<T>(), t.scale[t.terms++] = scales.back().data();
        }
      }
      typed.push_back(t);
    }
    if (std::is_same_v<T, float> && group.name().empty()) return kernels::pass(torch_pool(), n, k, typed);
    const Numbers dots = distributed::total(group, kernels::pass_exact(torch_pool(), n, k, typed));
    auto next = dots.begin();
    for (const auto& t : typed)
      if (t.dots) std::copy_n(next, k, t.dots), next += k;
  }
};

struct Recorded {
  using Scalars = RecordedScalars;
  static constexpr bool in_place = false;

  static void pass(const std::vector<Statement<Scalars>>& statements, const distributed::Group& group) {
    for (const auto& s : statements) {
      if (s.dot) {
        *s.dot =
            Scalars(group.name().empty() ? ops::total(*s.u * *s.v) : ops::distributed_dot(*s.u, *s.v, group.name()));
      } else {
        Tensor sum;
        for (const auto& term : s.terms) {
          const Tensor part = scaled(term.block, term.scale.tensor());
          sum = sum.defined() ? sum + part : part;
        }
        *s.out = sum;
      }
    }
  }

 private:
  // The gradient of a single scale sums over all of the block, which torch does in another order for each number of
  // threads. Ours does not; of several scales torch sums column by column, always in the same order.
  static Tensor scaled(const Tensor& block, const Tensor& scale) {
    if (scale.dim() == 0 || block.size(1) != 1) return scale * block;
    return ops::scale(block, scale.squeeze(0).to(block.scalar_type()));
  }
};

}  // namespace gossamer::krylov
