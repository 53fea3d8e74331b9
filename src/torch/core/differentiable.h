// SPDX-License-Identifier: BSD-3-Clause
// The one differentiation node of all ops.
//
// An op hands over its differentiable inputs, itself, and its vector-Jacobian product written in public ops. Those go
// through the dispatcher again, so derivatives of any order, forward mode, torch.func and torch.compile follow.
// (torch::autograd::Function would do, were it not refused by torch.func.) The node itself is in differentiable.cpp:
// torch's autograd headers take longer to compile than an op.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <functional>
#include <vector>

namespace gossamer {

using at::Tensor;
using variable_list = std::vector<Tensor>;

// Which gradients are wanted. Asking saves the work on the others.
using Wanted = std::vector<bool>;

// Gradients of the inputs from the gradient of the output; an unwanted one is left undefined. The output itself is
// given to those that asked for it (`differentiable` with a jvp), for solves and softmaxes; else it is undefined.
using Vjp = std::function<variable_list(const Tensor& grad, const variable_list& inputs, const Tensor& output,
                                        const Wanted& wanted)>;
// The tangent of the output in public ops; a tangent of an input that is undefined is zero.
using Jvp =
    c10::function_ref<Tensor(const variable_list& primals, const variable_list& tangents, const Tensor& output)>;

// The same for several outputs, of which only the first few are differentiable: `grads` are theirs, undefined where
// there is none, and so are the tangents.
using VjpOfMany = std::function<variable_list(const variable_list& grads, const variable_list& inputs,
                                              const variable_list& outputs, const Wanted& wanted)>;
using JvpOfMany = c10::function_ref<variable_list(const variable_list& primals, const variable_list& tangents,
                                                  const variable_list& outputs)>;

// The output of `op` with its derivatives recorded. `op` calls the dispatcher. It must be linear in each input, so that
// forward mode is Σ_k op(inputs with input k replaced by its tangent). An input may be undefined (an optional one that
// was not given).
Tensor differentiable(const char* name, const variable_list& inputs, c10::function_ref<Tensor(const variable_list&)> op,
                      Vjp vjp);

// The same for an op that is not linear. The vjp gets the output, if it is to be kept.
Tensor differentiable(const char* name, const variable_list& inputs, c10::function_ref<Tensor(const variable_list&)> op,
                      Vjp vjp, Jvp jvp, bool keep_output = true);

// The same for several outputs, of which the first `differentiable` have derivatives.
variable_list differentiable_many(const char* name, const variable_list& inputs,
                                  c10::function_ref<variable_list(const variable_list&)> op, VjpOfMany vjp,
                                  JvpOfMany jvp, size_t differentiable, bool keep_outputs);

}  // namespace gossamer
