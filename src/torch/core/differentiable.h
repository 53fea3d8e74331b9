// SPDX-License-Identifier: BSD-3-Clause
// The one differentiation node of all ops.
//
// An op hands over its differentiable inputs, itself, and its vector-Jacobian product written in public ops. Those go
// through the dispatcher again, so derivatives of any order, forward mode, torch.func and torch.compile follow.
// (torch::autograd::Function would do, were it not refused by torch.func.)
#pragma once
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gossamer {

using at::Tensor;
using torch::autograd::variable_list;

// Which gradients are wanted. Asking saves the work on the others.
using Wanted = std::vector<bool>;

// Gradients of the inputs from the gradient of the output; an unwanted one is left undefined. The output itself is
// given to those that asked for it (`differentiable` with a jvp), for solves and softmaxes; else it is undefined.
using Vjp = std::function<variable_list(const Tensor& grad, const variable_list& inputs, const Tensor& output,
                                        const Wanted& wanted)>;

// The same for several outputs, of which only the first few are differentiable: `grads` are theirs, undefined where
// there is none.
using VjpOfMany = std::function<variable_list(const variable_list& grads, const variable_list& inputs,
                                              const variable_list& outputs, const Wanted& wanted)>;

struct OpNode : torch::autograd::Node {
  OpNode(std::string op, const variable_list& inputs, VjpOfMany vjp);

  void keep_outputs(const variable_list& outputs, size_t differentiable);
  variable_list apply(variable_list&& grads) override;
  void release_variables() override;
  std::string name() const override { return op_ + "Backward"; }

 private:
  std::string op_;
  std::vector<torch::autograd::SavedVariable> inputs_;
  std::vector<torch::autograd::SavedVariable> outputs_;
  VjpOfMany vjp_;
};

// Inputs may be undefined (an optional one that was not given). Tangents of the inputs, undefined where there is none;
// empty if no input has one.
variable_list tangents(const variable_list& inputs);
variable_list primals(const variable_list& inputs);

inline void set_tangent(const Tensor& output, const Tensor& tangent) {
  if (tangent.defined()) output._set_fw_grad(tangent, /*level=*/0, /*is_inplace_op=*/false);
}

// The outputs of `op` and its node, if there is one. The first `differentiable` outputs have a history.
template <class Op>
std::pair<variable_list, c10::intrusive_ptr<OpNode>> call_and_record(const char* name, const variable_list& inputs,
                                                                     const Op& op, VjpOfMany vjp,
                                                                     size_t differentiable) {
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
template <class Op>
std::pair<Tensor, c10::intrusive_ptr<OpNode>> call_and_record(const char* name, const variable_list& inputs,
                                                              const Op& op, Vjp vjp) {
  auto [outputs, node] = call_and_record(
      name, inputs, [&op](const variable_list& in) { return variable_list{op(in)}; },
      [vjp = std::move(vjp)](const variable_list& grads, const variable_list& in, const variable_list& out,
                             const Wanted& wanted) {
        return vjp(grads[0], in, out.empty() ? Tensor() : out[0], wanted);
      },
      1);
  return {outputs[0], node};
}

// The output of `op` with its derivatives call_and_record. `op` maps variable_list → Tensor and calls the dispatcher.
// It must be linear in each input, so that forward mode is Σ_k op(inputs with input k with_tangent by its tangent).
template <class Op>
Tensor differentiable(const char* name, const variable_list& inputs, const Op& op, Vjp vjp) {
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

// The same for an op that is not linear: jvp(primals, tangents, output) gives the tangent in public ops, a tangent that
// is undefined being zero. The vjp gets the output, if it is to be kept.
template <class Op, class Jvp>
Tensor differentiable(const char* name, const variable_list& inputs, const Op& op, Vjp vjp, const Jvp& jvp,
                      bool keep_output = true) {
  const auto [output, node] = call_and_record(name, inputs, op, std::move(vjp));
  const variable_list input_tangents = tangents(inputs);
  if (!input_tangents.empty()) set_tangent(output, jvp(primals(inputs), input_tangents, output));
  if (node && keep_output) node->keep_outputs({output}, 1);  // with its tangent, which forward over reverse reads
  return output;
}

// The same for several outputs, of which the first `differentiable` have derivatives; jvp gives their tangents.
template <class Op, class Jvp>
variable_list differentiable_many(const char* name, const variable_list& inputs, const Op& op, VjpOfMany vjp,
                                  const Jvp& jvp, size_t differentiable, bool keep_outputs) {
  const auto [outputs, node] = call_and_record(name, inputs, op, std::move(vjp), differentiable);
  if (const variable_list input_tangents = tangents(inputs); !input_tangents.empty()) {
    const variable_list output_tangents = jvp(primals(inputs), input_tangents, outputs);
    for (size_t k = 0; k < differentiable; ++k) set_tangent(outputs[k], output_tangents[k]);
  }
  if (node && keep_outputs) node->keep_outputs(outputs, differentiable);
  return outputs;
}

}  // namespace gossamer
