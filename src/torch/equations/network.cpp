// SPDX-License-Identifier: BSD-3-Clause
// A network of layers, forward and back: the hidden ones (ELU, concatenate), the last one (average, softmax), and the
// loss.
#include <ATen/ATen.h>

#include <gossamer/equations.h>
#include "core/csr.h"

namespace gossamer::equations {
namespace {

// The nodes that the loss is taken over, and their classes.
std::pair<Tensor, Tensor> targets(const Tensor& H, const Tensor& y, const Tensor& mask) {
  TORCH_CHECK_VALUE(H.dim() == 2, "loss: H must be (N, classes), not ", shape_text(H));
  TORCH_CHECK_TYPE(y.scalar_type() == at::kLong, "loss: y must be int64, not ", y.scalar_type());
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool, "loss: mask must be bool, not ", mask.scalar_type());
  TORCH_CHECK_VALUE(y.dim() == 1 && mask.dim() == 1 && y.size(0) == H.size(0) && mask.size(0) == H.size(0),
                    "loss: y has shape ", shape_text(y), " and mask ", shape_text(mask), " but there are ", H.size(0),
                    " nodes");
  const Tensor nodes = mask.nonzero().squeeze(1), classes = y.index_select(0, nodes);
  TORCH_CHECK_VALUE(nodes.numel() > 0, "loss: the mask is empty");
  const int64_t low = classes.min().item<int64_t>(), high = classes.max().item<int64_t>();
  TORCH_CHECK_VALUE(low >= 0 && high < H.size(1), "loss: class ", low < 0 ? low : high, " is outside the ", H.size(1),
                    " classes");
  return {nodes, classes};
}

void append(Named& all, size_t layer, const Named& more) {
  for (const auto& [name, value] : more)
    if (value.defined()) all.emplace_back("layer" + std::to_string(layer + 1) + "." + name, value);
}

template <class Parameters>
Named quantities(const Pattern& A, const Tensor& H, const Tensor& y, const Tensor& mask,
                 const std::vector<Parameters>& layers, double slope) {
  TORCH_CHECK_VALUE(A.rows() == A.cols(), "network: A must be square, not ", A.rows(), " x ", A.cols());
  TORCH_CHECK_VALUE(!layers.empty(), "network: wants at least one layer");
  std::vector<decltype(forward(A, H, layers[0], true, slope))> forwards;
  std::vector<Tensor> inputs = {H};
  for (const Parameters& p : layers) {
    forwards.push_back(forward(A, inputs.back(), p, /*last=*/&p == &layers.back(), slope));
    inputs.push_back(forwards.back().H);
  }
  std::vector<decltype(backward(A, H, layers[0], forwards[0], H, true, slope))> backwards(layers.size());
  Tensor delta = loss_gradient(inputs.back(), y, mask);
  for (size_t l = layers.size(); l-- > 0; delta = backwards[l].dH)
    backwards[l] = backward(A, inputs[l], layers[l], forwards[l], delta, /*last=*/l + 1 == layers.size(), slope);

  Named all = {{"loss", loss(inputs.back(), y, mask)}};
  for (size_t l = 0; l < layers.size(); ++l) {
    append(all, l, layers[l].named());
    append(all, l, forwards[l].named());
    append(all, l, backwards[l].named());
  }
  return all;
}

}  // namespace

// ℒ = -1/|T| Σ_{i ∈ T} log H[i, y_i]
Tensor loss(const Tensor& H, const Tensor& y, const Tensor& mask) {
  const auto [nodes, classes] = targets(H, y, mask);
  return H.index({nodes, classes}).log().mean().neg();
}

// ∂ℒ/∂H[i, y_i] = -1 / (|T| H[i, y_i]) for i ∈ T, else 0
Tensor loss_gradient(const Tensor& H, const Tensor& y, const Tensor& mask) {
  const auto [nodes, classes] = targets(H, y, mask);
  const Tensor at_targets = (H.index({nodes, classes}) * static_cast<double>(nodes.numel())).reciprocal().neg();
  return at::zeros_like(H).index_put({nodes, classes}, at_targets);
}

Named network(const Pattern& A, const Tensor& H, const Tensor& y, const Tensor& mask,
              const std::vector<ParametersV1>& layers, double slope) {
  return quantities(A, H, y, mask, layers, slope);
}

Named network(const Pattern& A, const Tensor& H, const Tensor& y, const Tensor& mask,
              const std::vector<ParametersV2>& layers, double slope) {
  return quantities(A, H, y, mask, layers, slope);
}

}  // namespace gossamer::equations
