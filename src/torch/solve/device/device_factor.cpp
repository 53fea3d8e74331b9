// SPDX-License-Identifier: BSD-3-Clause
#include "solve/device/device_factor.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/host.h"
#include "solve/refine.h"

namespace gossamer {
namespace {

class Eliminated final : public DeviceEngineFactor {
 public:
  Eliminated(std::shared_ptr<const Elimination> elimination, Tensor factors)
      : elimination_(std::move(elimination)), factors_(std::move(factors)) {}
  const char* engine() const override { return "device"; }
  bool symmetric() const override { return elimination_->symmetric(); }
  Tensor solve(const Tensor& b, bool t) const override { return elimination_->solve(factors_, b, t); }
  Tensor good(const Tensor&) const override {
    const Tensor D = pivots(), sizes = D.abs(), found = sizes.gt(sizes.amax(0).mul(rounding_of_pivots));
    return (symmetric() ? found.logical_and(D.gt(0)) : found).all(0);
  }
  Tensor log_abs_det() const override { return pivots().abs().log().sum(0); }
  // Every negative pivot changes the sign, and so does each exchange of two rows or columns.
  Tensor sign() const override {
    const Tensor negative = pivots().lt(0).sum(0).remainder(2);
    return negative.mul(-2).add(1).mul(elimination_->parity()).to(at::kDouble);
  }
  std::shared_ptr<const DeviceEngineFactor> heads(int64_t first, int64_t count) const override {
    return std::make_shared<Eliminated>(elimination_, factors_.narrow(1, first, count).contiguous());
  }

 private:
  Tensor pivots() const { return elimination_->pivots(factors_); }

  std::shared_ptr<const Elimination> elimination_;
  Tensor factors_;
};

}  // namespace

std::shared_ptr<const DeviceEngineFactor> eliminated(std::shared_ptr<const Elimination> elimination,
                                                     const Tensor& values) {
  Tensor factors = elimination->factors(values);
  return std::make_shared<Eliminated>(std::move(elimination), std::move(factors));
}

DeviceFactor::DeviceFactor(const DevicePattern& A, const Tensor& values, bool symmetric, const Make& make)
    : scales_(A, values, symmetric) {
  const KeptResults kept;
  const Tensor ones = at::ones({A.n, values.size(1)}, values.options()), sizes = values.abs();
  norm_ = A.product(sizes, ones, false).amax(0);
  norm_t_ = A.product(sizes, ones, true).amax(0);
  const Tensor scaled = scales_.scaled(A, values);
  engine_ = make(scaled);
  error_ = engine_ ? trial(A, values, scaled) : at::full_like(norm_, std::numeric_limits<double>::infinity());
}

// The equations R A C x = b are solved for x_k = cos k, without refinement.
Tensor DeviceFactor::trial(const DevicePattern& A, const Tensor& values, const Tensor& scaled) const {
  const Tensor x = at::arange(1, A.n + 1, values.options()).cos().reshape({A.n, 1, 1}).expand({A.n, heads(), 1});
  const Tensor ones = at::ones({A.n, heads()}, values.options()), b = A.product(scaled, x, false);
  const Tensor norm = A.product(scaled.abs(), ones, false).amax(0).unsqueeze(1), y = engine_->solve(b, false);
  const Tensor error = backward_error(b.sub(A.product(scaled, y, false)), y, b, norm, 0).amax(1);
  Tensor good = engine_->good(values);
  if (engine_->symmetric()) good = good.logical_and(values.eq(A.transposed(values)).all(0));
  return at::where(good, error, std::numeric_limits<double>::infinity());
}

Tensor DeviceFactor::solve(const Tensor& b, bool t) const {
  const Tensor &before = t ? scales_.columns : scales_.rows, &after = t ? scales_.rows : scales_.columns;
  return engine_->solve(b.mul(before.unsqueeze(2)), t).mul(after.unsqueeze(2));
}

Tensor DeviceFactor::log_abs_det() const {
  return engine_->log_abs_det().sub(scales_.rows.log().sum(0)).sub(scales_.columns.log().sum(0));
}

DeviceFactor DeviceFactor::narrow(int64_t first, int64_t count) const {
  DeviceFactor some = *this;
  for (Tensor* of_rows : {&some.scales_.rows, &some.scales_.columns}) *of_rows = of_rows->narrow(1, first, count);
  for (Tensor* number : {&some.norm_, &some.norm_t_, &some.error_}) *number = number->narrow(0, first, count);
  some.engine_ = engine_->heads(first, count);
  return some;
}

bool are_on_device(const Objects<FactoredMatrix>& factors) {
  return !factors.empty() && dynamic_cast<const DeviceHead*>(factors[0].get());
}

Tensor for_heads(const Objects<FactoredMatrix>& factors, int64_t dim,
                 const std::function<Tensor(const DeviceFactor& factor, int64_t first, int64_t count)>& f) {
  const auto head = [&](int64_t h) {
    const auto* found = dynamic_cast<const DeviceHead*>(factors[h].get());
    TORCH_CHECK_VALUE(found, "factor_solve: some factors are on a device and others on the host");
    return found;
  };
  std::vector<Tensor> results;
  const int64_t heads = static_cast<int64_t>(factors.size());
  for (int64_t first = 0, count = 1; first < heads; first += count, count = 1) {
    const DeviceHead* start = head(first);
    while (first + count < heads && head(first + count)->all() == start->all() &&
           head(first + count)->head() == start->head() + count)
      ++count;
    const bool whole = count == start->all()->heads();
    results.push_back(whole ? f(*start->all(), first, count)
                            : f(start->all()->narrow(start->head(), count), first, count));
  }
  return results.size() == 1 ? results[0] : at::cat(results, dim);
}

}  // namespace gossamer
