// SPDX-License-Identifier: BSD-3-Clause
#include "core/differentiable.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <string>
#include <utility>

namespace gossamer {
namespace {

class OpNode : public torch::autograd::Node {
 public:
  OpNode(std::string op, const variable_list& inputs, VjpOfMany vjp)
      : Node(torch::autograd::collect_next_edges(inputs)), op_(std::move(op)), vjp_(std::move(vjp)) {
    inputs_.reserve(inputs.size());
    for (const Tensor& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
  }

  void keep_outputs(const variable_list& outputs, size_t differentiable) {
    for (size_t k = 0; k < outputs.size(); ++k) outputs_.emplace_back(outputs[k], /*is_output=*/k < differentiable);
  }

  variable_list apply(variable_list&& grads) override {
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

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& input : inputs_) input.reset_data();
    for (auto& output : outputs_) output.reset_data();
  }

  std::string name() const override { return op_ + "Backward"; }

 private:
  std::string op_;
  std::vector<torch::autograd::SavedVariable> inputs_;
  std::vector<torch::autograd::SavedVariable> outputs_;
  VjpOfMany vjp_;
};

// The outputs of `op` and its node, if there is one. The first `differentiable` outputs have a history.
std::pair<variable_list, c10::intrusive_ptr<OpNode>> call_and_record(
    const char* name, const variable_list& inputs, c10::function_ref<variable_list(const variable_list&)> op,
    VjpOfMany vjp, size_t differentiable) {
  variable_list outputs;
  c10::intrusive_ptr<OpNode> node;
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    outputs = op(inputs);
  }
  if (at::GradMode::is_enabled() && torch::autograd::compute_requires_grad(inputs)) {
    node = c10::make_intrusive<OpNode>(name, inputs, std::move(vjp));
    for (size_t k = 0; k < differentiable; ++k) torch::autograd::set_history(outputs[k], node);
  }
  return {outputs, node};
}

// With one output.
std::pair<Tensor, c10::intrusive_ptr<OpNode>> call_and_record(const char* name, const variable_list& inputs,
                                                              c10::function_ref<Tensor(const variable_list&)> op,
                                                              Vjp vjp) {
  auto [outputs, node] = call_and_record(
      name, inputs, [&op](const variable_list& in) { return variable_list{op(in)}; },
      [vjp = std::move(vjp)](const variable_list& grads, const variable_list& in, const variable_list& out,
                             const Wanted& wanted) {
        return vjp(grads[0], in, out.empty() ? Tensor() : out[0], wanted);
      },
      1);
  return {outputs[0], node};
}

// Tangents of the inputs, undefined where there is none; empty if no input has one.
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

void set_tangent(const Tensor& output, const Tensor& tangent) {
  if (tangent.defined()) output._set_fw_grad(tangent, /*level=*/0, /*is_inplace_op=*/false);
}

}  // namespace

Tensor differentiable(const char* name, const variable_list& inputs, c10::function_ref<Tensor(const variable_list&)> op,
                      Vjp vjp) {
  const Tensor output = call_and_record(name, inputs, op, std::move(vjp)).first;
  const variable_list input_tangents = tangents(inputs);
  if (input_tangents.empty()) return output;
  Tensor tangent;
  const variable_list primal_inputs = primals(inputs);
  for (size_t k = 0; k < input_tangents.size(); ++k) {
    if (!input_tangents[k].defined()) continue;
    variable_list with_tangent = primal_inputs;
    with_tangent[k] = input_tangents[k];
    const Tensor term = op(with_tangent);
    tangent = tangent.defined() ? tangent.add(term) : term;
  }
  set_tangent(output, tangent);
  return output;
}

Tensor differentiable(const char* name, const variable_list& inputs, c10::function_ref<Tensor(const variable_list&)> op,
                      Vjp vjp, Jvp jvp, bool keep_output) {
  const auto [output, node] = call_and_record(name, inputs, op, std::move(vjp));
  const variable_list input_tangents = tangents(inputs);
  if (!input_tangents.empty()) set_tangent(output, jvp(primals(inputs), input_tangents, output));
  if (node && keep_output) node->keep_outputs({output}, 1);  // with its tangent, which forward over reverse reads
  return output;
}

variable_list differentiable_many(const char* name, const variable_list& inputs,
                                  c10::function_ref<variable_list(const variable_list&)> op, VjpOfMany vjp,
                                  JvpOfMany jvp, size_t differentiable, bool keep_outputs) {
  const auto [outputs, node] = call_and_record(name, inputs, op, std::move(vjp), differentiable);
  if (const variable_list input_tangents = tangents(inputs); !input_tangents.empty()) {
    const variable_list output_tangents = jvp(primals(inputs), input_tangents, outputs);
    for (size_t k = 0; k < differentiable; ++k) set_tangent(outputs[k], output_tangents[k]);
  }
  if (node && keep_outputs) node->keep_outputs(outputs, differentiable);
  return outputs;
}

}  // namespace gossamer
