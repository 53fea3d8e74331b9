// SPDX-License-Identifier: BSD-3-Clause
#include "jacobian/linearised.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <mutex>
#include <utility>

#include "core/csr.h"

namespace gossamer {
namespace {

// A level of forward mode, left in any case. torch has one for all threads, and who leaves it takes it from others.
std::recursive_mutex forward_mode;

class DualLevel {
 public:
  DualLevel() : lock_(forward_mode), level_(torch::autograd::forward_ad::enter_dual_level()) {}
  ~DualLevel() { torch::autograd::forward_ad::exit_dual_level(level_); }
  DualLevel(const DualLevel&) = delete;
  int64_t operator()() const { return static_cast<int64_t>(level_); }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  uint64_t level_;
};

}  // namespace

Linearised::Linearised(std::string op, VectorFunction f, Tensor x)
    : op_(std::move(op)), f_(std::move(f)), x_(std::move(x)) {
  TORCH_CHECK_TYPE(at::isFloatingType(x_.scalar_type()), op_, ": x must have a floating-point dtype, not ",
                   x_.scalar_type());
  TORCH_CHECK_VALUE(x_.dim() == 1, op_, ": x must be a vector (n,), not shape ", shape_text(x_));
}

Linearised Linearised::expecting(int64_t rows) const {
  Linearised same = *this;
  same.rows_ = rows;
  return same;
}

Tensor Linearised::value(const Tensor& x) const {
  Tensor y = f_(x);
  TORCH_CHECK_VALUE(y.defined() && y.dim() == 1, op_, ": f must return a vector (m,), not shape ",
                    y.defined() ? shape_text(y) : "undefined");
  TORCH_CHECK_TYPE(at::isFloatingType(y.scalar_type()), op_, ": f must return floating-point numbers, not ",
                   y.scalar_type());
  TORCH_CHECK_VALUE(!rows_ || *rows_ == y.size(0), op_, ": the pattern is ", *rows_, " x ", cols(), ", but f gives ",
                    y.size(0), " numbers");
  return y;
}

Tensor Linearised::push(int64_t count, const Seeds& seeds) const {
  std::vector<Tensor> products;
  for (int64_t k = 0; k < count; ++k) {
    const DualLevel level;
    const Tensor v = seeds(k, k + 1)[0].to(x_.options());
    const Tensor y = value(at::_make_dual(x_, v, level()));
    const auto [primal, tangent] = at::_unpack_dual(y, level());
    products.push_back(tangent.defined() ? tangent : at::zeros_like(primal));
  }
  return products.empty() ? at::empty({0, 0}, x_.options()) : at::stack(products);
}

Tensor Linearised::pull(int64_t count, const Seeds& seeds) const {
  const bool recorded = c10::GradMode::is_enabled();
  const c10::AutoGradMode on(true);
  const Tensor x = recorded && x_.requires_grad() ? x_ : x_.detach().requires_grad_();
  const Tensor y = value(x);
  std::vector<Tensor> products;
  for (int64_t k = 0; k < count; ++k) {
    const Tensor v = seeds(k, k + 1)[0].to(y.options());
    Tensor row;
    if (y.requires_grad())
      row = torch::autograd::grad({y}, {x}, {v}, /*retain_graph=*/true, /*create_graph=*/recorded,
                                  /*allow_unused=*/true)[0];
    products.push_back(row.defined() ? row : at::zeros_like(x_));
  }
  return products.empty() ? at::empty({0, 0}, x_.options()) : at::stack(products);
}

}  // namespace gossamer
