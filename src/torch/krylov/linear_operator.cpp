// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gossamer/linear_operator.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

namespace gossamer::linalg {

LinearOperator::LinearOperator(Shape shape, Function matvec, std::vector<Tensor> params, Function rmatvec,
                               bool symmetric)
    : shape_(shape),
      matvec_(std::move(matvec)),
      rmatvec_(std::move(rmatvec)),
      params_(std::move(params)),
      symmetric_(symmetric) {
  TORCH_CHECK_VALUE(matvec_, "LinearOperator: matvec must be a function");
  TORCH_CHECK_VALUE(!symmetric || shape[0] == shape[1], "LinearOperator: a symmetric operator must be square, not ",
                    shape[0], " x ", shape[1]);
}

Tensor LinearOperator::matvec(const Tensor& x) const {
  return apply(x, params_, false);
}

Tensor LinearOperator::rmatvec(const Tensor& u) const {
  return apply(u, params_, true);
}

LinearOperator LinearOperator::T() const {
  LinearOperator other = *this;
  std::swap(other.shape_[0], other.shape_[1]);
  other.transposed_ = !transposed_;
  return other;
}

Tensor LinearOperator::apply(const Tensor& x, const std::vector<Tensor>& params, bool t) const {
  const bool flipped = t != transposed_;
  if (!flipped || symmetric_) return matvec_(x, params);
  if (rmatvec_) return rmatvec_(x, params);
  // Aᵀ u is the gradient of ⟨u, A z⟩, wherever z is.
  const bool record = at::GradMode::is_enabled();
  const at::AutoGradMode on(true);
  auto size = x.sizes().vec();
  size[0] = shape_[transposed_ ? 0 : 1];
  const Tensor z = at::zeros(size, x.options()).requires_grad_();
  const Tensor gradient = torch::autograd::grad({matvec_(z, params)}, {z}, {x}, /*retain_graph=*/record,
                                                /*create_graph=*/record, /*allow_unused=*/true)[0];
  return gradient.defined() ? gradient : at::zeros_like(z);
}

}  // namespace gossamer::linalg
