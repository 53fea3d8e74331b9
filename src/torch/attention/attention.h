// SPDX-License-Identifier: BSD-3-Clause
// The dispatcher's side of graph attention, written once for both kinds (gat.cpp, gatv2.cpp). A kind has four inputs,
// of which the last, on the edges, is optional. It names:
//
//   name       the op's, for autograd and messages
//   Inputs     a struct of its four tensors. Tangents and gradients of the inputs have the same form
//   forward    the fused op {Z, lse}, and `backward`, the fused op of the four gradients
//   Composed   the same in public ops, with jvp(tangents) and hvp(G, tangents)
//   check      throws unless the inputs fit the settings
//
// The derivatives follow from these, where u are the tangents of the inputs and Ġ is that of G:
//
//   forward:    vjp  G ↦ backward(G)                            jvp  u ↦ composed.jvp(u)
//   backward:   vjp  u ↦ {composed.hvp(G, u), composed.jvp(u)}      jvp  u, Ġ ↦ composed.hvp(G, u) + backward(Ġ)
//
// For backward(G) is the gradient of ⟨Z, G⟩, and its derivative along u is the Hessian of ⟨Z, G⟩ times u. The Hessian
// is symmetric, so the vjp and the jvp of backward are the same product.
#pragma once
#include <algorithm>

#include "attention/composed.h"
#include "core/batch.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"

namespace gossamer {

using Optional = std::optional<Tensor>;
using ops::AttentionGradients;
using AttentionOutputs = std::tuple<Tensor, Tensor>;  // Z, and lse or the weights.

inline Tensor or_undefined(const Optional& t) {
  return t ? *t : Tensor();
}
inline Optional or_none(const Tensor& t) {
  return t.defined() ? Optional(t) : std::nullopt;
}

// autograd and vmap handle lists: the four inputs in the order of the schema, sometimes with more tensors behind them.
enum { FIRST, SECOND, THIRD, ON_EDGES, INPUTS };

template <class Inputs>
Inputs from_list(const variable_list& list) {  // A list of three lacks the one on the edges: gradients without any.
  return {list[FIRST], list[SECOND], list[THIRD], list.size() > ON_EDGES ? list[ON_EDGES] : Tensor()};
}
template <class Inputs>
variable_list to_list(const Inputs& inputs) {
  const auto& [first, second, third, on_edges] = inputs;
  return {first, second, third, on_edges};
}
template <class Inputs>
Inputs contiguous_inputs(const Inputs& inputs) {
  return from_list<Inputs>(contiguous(to_list(inputs)));
}

// Checks the pattern, x_src, dropout and seed.
void check_attention(const char* op, const AttentionSettings& settings, const Tensor& x_src);
void check_keys(const char* op, const Tensor& keys, const Tensor& indices);  // (nnz,) int64, beside the pattern
// Checks another input against x_src: dtype, device and `size`, which `wanted` says in words.
void check_input(const char* op, const char* name, const Tensor& input, const Tensor& x_src,
                 const std::vector<SymInt>& size, const char* wanted);
// What a backward is given besides: the gradient G of Z, Z itself and lse.
void check_outputs(const char* op, const AttentionSettings& settings, const Tensor& x_src, const Tensor& G,
                   const Tensor& Z, const Tensor& lse);

template <class Kind>
variable_list call_forward(const AttentionSettings& settings, const variable_list& inputs) {
  const auto [Z, lse] =
      Kind::forward(settings.pattern, inputs[FIRST], inputs[SECOND], inputs[THIRD], or_none(inputs[ON_EDGES]),
                    settings.shape, settings.slope, settings.dropout, settings.seed, settings.keys);
  return {Z, lse};
}

// The gradients of the four inputs. Without an input on the edges the last one has no rows.
template <class Kind>
variable_list call_backward(const AttentionSettings& settings, const Tensor& G, const variable_list& inputs,
                            const Tensor& Z, const Tensor& lse) {
  return to_list(Kind::backward(settings.pattern, G, inputs[FIRST], inputs[SECOND], inputs[THIRD],
                                or_none(inputs[ON_EDGES]), Z, lse, settings.shape, settings.slope, settings.dropout,
                                settings.seed, settings.keys));
}

template <class Kind>
AttentionOutputs attention_autograd(TensorList pattern, const Tensor& first, const Tensor& second, const Tensor& third,
                                    const Optional& on_edges, SymIntArrayRef shape, double slope, double dropout,
                                    const Optional& seed, const Optional& keys) {
  const AttentionSettings settings{pattern.vec(), shape.vec(), slope, dropout, seed, keys};
  const variable_list outputs = differentiable_many(
      Kind::name, {first, second, third, or_undefined(on_edges)},
      [&](const variable_list& inputs) { return call_forward<Kind>(settings, inputs); },
      [settings](const variable_list& grads, const variable_list& inputs, const variable_list& kept, const Wanted&) {
        variable_list gradients = call_backward<Kind>(settings, grads[0], inputs, /*Z=*/kept[0], /*lse=*/kept[1]);
        if (!inputs[ON_EDGES].defined()) gradients[ON_EDGES] = Tensor();
        return gradients;
      },
      [&](const variable_list& inputs, const variable_list& tangents, const variable_list&) {
        using Inputs = typename Kind::Inputs;
        const typename Kind::Composed composed{settings, from_list<Inputs>(inputs)};
        return variable_list{composed.jvp(from_list<Inputs>(tangents))};
      },
      /*differentiable=*/1, /*keep_outputs=*/true);
  return {outputs[0], outputs[1]};
}

template <class Kind>
AttentionGradients attention_backward_autograd(TensorList pattern, const Tensor& G, const Tensor& first,
                                               const Tensor& second, const Tensor& third, const Optional& on_edges,
                                               const Tensor& Z, const Tensor& lse, SymIntArrayRef shape, double slope,
                                               double dropout, const Optional& seed, const Optional& keys) {
  using Inputs = typename Kind::Inputs;
  using Composed = typename Kind::Composed;
  constexpr size_t OF_Z = INPUTS;  // G, the gradient of Z, stands behind the inputs.
  const AttentionSettings settings{pattern.vec(), shape.vec(), slope, dropout, seed, keys};
  const variable_list gradients = differentiable_many(
      Kind::name, {first, second, third, or_undefined(on_edges), G},
      [&](const variable_list& inputs) { return call_backward<Kind>(settings, inputs[OF_Z], inputs, Z, lse); },
      [settings](const variable_list& grads, const variable_list& inputs, const variable_list&, const Wanted& wanted) {
        const Composed composed{settings, from_list<Inputs>(inputs)};
        const Inputs tangents = from_list<Inputs>(grads);  // The gradients of the gradients take their place.
        variable_list result = to_list(composed.hvp(inputs[OF_Z], tangents));
        result.push_back(wanted[OF_Z] ? composed.jvp(tangents) : Tensor());
        return result;
      },
      [&](const variable_list& inputs, const variable_list& tangents, const variable_list&) {
        variable_list result(INPUTS);
        if (std::any_of(tangents.begin(), tangents.begin() + INPUTS, [](const Tensor& t) { return t.defined(); })) {
          const Composed composed{settings, from_list<Inputs>(inputs)};
          result = to_list(composed.hvp(inputs[OF_Z], from_list<Inputs>(tangents)));
        }
        if (!tangents[OF_Z].defined()) return result;
        const variable_list along_G = call_backward<Kind>(settings, tangents[OF_Z], inputs, Z, lse);
        for (int k = 0; k < INPUTS; ++k) result[k] = result[k].defined() ? result[k] + along_G[k] : along_G[k];
        return result;
      },
      /*differentiable=*/on_edges ? INPUTS : ON_EDGES, /*keep_outputs=*/false);
  return from_list<AttentionGradients>(gradients);
}

// vmap: one member of the batch after the other, as each is a whole pass over the edges anyway.
template <class Kind>
AttentionOutputs attention_batched(TensorList pattern, const Tensor& first, const Tensor& second, const Tensor& third,
                                   const Optional& on_edges, SymIntArrayRef shape, double slope, double dropout,
                                   const Optional& seed, const Optional& keys) {
  enum { SEED = INPUTS };
  const variable_list tensors = {first, second, third, or_undefined(on_edges), or_undefined(seed)};
  const variable_list outputs = one_by_one(Kind::name, pattern, tensors, [&](const variable_list& member) {
    return call_forward<Kind>({pattern.vec(), shape.vec(), slope, dropout, or_none(member[SEED]), keys}, member);
  });
  return {outputs[0], outputs[1]};
}

template <class Kind>
AttentionGradients attention_backward_batched(TensorList pattern, const Tensor& G, const Tensor& first,
                                              const Tensor& second, const Tensor& third, const Optional& on_edges,
                                              const Tensor& Z, const Tensor& lse, SymIntArrayRef shape, double slope,
                                              double dropout, const Optional& seed, const Optional& keys) {
  enum { OF_Z = INPUTS, OUTPUT, LSE, SEED };
  const variable_list tensors = {first, second, third, or_undefined(on_edges), G, Z, lse, or_undefined(seed)};
  return from_list<AttentionGradients>(one_by_one(Kind::name, pattern, tensors, [&](const variable_list& member) {
    const AttentionSettings settings{pattern.vec(), shape.vec(), slope, dropout, or_none(member[SEED]), keys};
    return call_backward<Kind>(settings, member[OF_Z], member, member[OUTPUT], member[LSE]);
  }));
}

// The composite ops. Z alone; a seed is drawn if dropout wants one and none is given.
template <class Kind>
Tensor attention_op(TensorList pattern, const Tensor& first, const Tensor& second, const Tensor& third,
                    const Optional& on_edges, SymIntArrayRef shape, double slope, double dropout,
                    std::optional<int64_t> seed, const Optional& keys) {
  const Optional drawn = ops::dropout_seed(dropout, seed, first);
  return std::get<0>(Kind::forward(pattern, first, second, third, on_edges, shape, slope, dropout, drawn, keys));
}

// {Z, weights}: the weights m ∘ s are stored, and both are differentiable.
template <class Kind>
AttentionOutputs attention_with_weights_op(TensorList pattern, const Tensor& first, const Tensor& second,
                                           const Tensor& third, const Optional& on_edges, SymIntArrayRef shape,
                                           double slope, double dropout, std::optional<int64_t> seed,
                                           const Optional& keys) {
  const AttentionSettings settings{pattern.vec(), shape.vec(), slope, dropout, ops::dropout_seed(dropout, seed, first),
                                   keys};
  const typename Kind::Inputs inputs{first, second, third, or_undefined(on_edges)};
  Kind::check(settings, inputs);
  const typename Kind::Composed composed{settings, inputs};
  return {composed.Z(), composed.softmax.weights()};
}

// The front end.

template <class Kind>
Tensor attention(const Pattern& pattern, const typename Kind::Inputs& inputs, const AttentionOptions& options) {
  const auto& [first, second, third, on_edges] = inputs;
  return attention_op<Kind>(pattern.tensors_for({first, second, third, on_edges}), first, second, third,
                            or_none(on_edges), pattern.sym_shape(), options.negative_slope, options.dropout,
                            options.seed, options.keys);
}

template <class Kind>
AttentionOutputs attention_with_weights(const Pattern& pattern, const typename Kind::Inputs& inputs,
                                        const AttentionOptions& options) {
  const auto& [first, second, third, on_edges] = inputs;
  return attention_with_weights_op<Kind>(pattern.tensors_for({first, second, third, on_edges}), first, second, third,
                                         or_none(on_edges), pattern.sym_shape(), options.negative_slope,
                                         options.dropout, options.seed, options.keys);
}

}  // namespace gossamer
