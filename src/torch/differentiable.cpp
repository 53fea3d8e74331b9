// SPDX-License-Identifier: BSD-3-Clause
#include "differentiable.h"

namespace gossamer {

OpNode::OpNode(std::string op, const variable_list& inputs, Vjp vjp)
    : Node(torch::autograd::collect_next_edges(inputs)), op_(std::move(op)), vjp_(std::move(vjp)) {
  inputs_.reserve(inputs.size());
  for (const Tensor& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
}

void OpNode::keep_output(const Tensor& output) {
  output_ = torch::autograd::SavedVariable(output, /*is_output=*/true);
}

variable_list OpNode::apply(variable_list&& grads) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!grads[0].defined()) return variable_list(inputs_.size());
  variable_list inputs;
  Wanted wanted;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    inputs.push_back(inputs_[k].unpack());
    wanted.push_back(task_should_compute_output(k));
  }
  return vjp_(grads[0], inputs, output_.unpack(getptr()), wanted);
}

void OpNode::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& input : inputs_) input.reset_data();
  output_.reset_data();
}

variable_list tangents(const variable_list& inputs) {
  variable_list found;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& tangent = inputs[k]._fw_grad(/*level=*/0);
    if (!tangent.defined()) continue;
    found.resize(inputs.size());
    found[k] = tangent;
  }
  return found;
}

variable_list primals(const variable_list& inputs) {
  variable_list found;
  for (const Tensor& input : inputs) found.push_back(input._fw_primal(/*level=*/0));
  return found;
}

}  // namespace gossamer
