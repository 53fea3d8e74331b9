// SPDX-License-Identifier: BSD-3-Clause
#include "core/differentiable.h"

#include <algorithm>

namespace gossamer {

OpNode::OpNode(std::string op, const variable_list& inputs, VjpOfMany vjp)
    : Node(torch::autograd::collect_next_edges(inputs)), op_(std::move(op)), vjp_(std::move(vjp)) {
  inputs_.reserve(inputs.size());
  for (const Tensor& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
}

void OpNode::keep_outputs(const variable_list& outputs, size_t differentiable) {
  for (size_t k = 0; k < outputs.size(); ++k) outputs_.emplace_back(outputs[k], /*is_output=*/k < differentiable);
}

variable_list OpNode::apply(variable_list&& grads) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::none_of(grads.begin(), grads.end(), [](const Tensor& grad) { return grad.defined(); }))
    return variable_list(inputs_.size());
  variable_list inputs, outputs;
  Wanted wanted;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    inputs.push_back(inputs_[k].unpack());
    wanted.push_back(task_should_compute_output(k));
  }
  for (auto& output : outputs_) outputs.push_back(output.unpack(getptr()));
  return vjp_(grads, inputs, outputs, wanted);
}

void OpNode::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& input : inputs_) input.reset_data();
  for (auto& output : outputs_) output.reset_data();
}

variable_list tangents(const variable_list& inputs) {
  variable_list result;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].defined()) continue;
    const Tensor& tangent = inputs[k]._fw_grad(/*level=*/0);
    if (!tangent.defined()) continue;
    result.resize(inputs.size());
    result[k] = tangent;
  }
  return result;
}

variable_list primals(const variable_list& inputs) {
  variable_list result;
  for (const Tensor& input : inputs) result.push_back(input.defined() ? input._fw_primal(/*level=*/0) : input);
  return result;
}

}  // namespace gossamer
