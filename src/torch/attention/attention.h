// SPDX-License-Identifier: BSD-3-Clause
// The dispatcher's side of both kinds of graph attention. A kind has three inputs a, b, c, an optional fourth d on the
// edges, the fused ops {Z, lse} = op(…) and {da, db, dc, dd} = backward(…, G, …, Z, lse), and `Composed`, the same
// in public ops:
//
//   op:        vjp G ↦ backward(G)                jvp u ↦ composed.moved(u)
//   backward:  vjp u ↦ {composed.second(G, u), composed.moved(u)}       jvp u, Ġ ↦ composed.second(G, u) + backward(Ġ)
//
// since backward(G) = ∂⟨Z, G⟩, whose derivative along u is ∂⟨Ź, G⟩: the Hessian is symmetric.
#pragma once
#include <string>

#include "attention/composed.h"
#include "core/batch.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"

namespace gossamer {

using Optional = std::optional<Tensor>;
using ops::Four;
using Pair = std::tuple<Tensor, Tensor>;

inline Tensor or_undefined(const Optional& t) {
  return t ? *t : Tensor();
}
inline Optional or_none(const Tensor& t) {
  return t.defined() ? Optional(t) : std::nullopt;
}

// Pattern, x_src, slope, dropout and seed.
void check_attention(const char* op, const Attention& how, const Tensor& x_src);
// Another tensor beside x_src; `wanted` says `size` in words.
void check_beside(const char* op, const char* name, const Tensor& t, const Tensor& x_src,
                  const std::vector<SymInt>& size, const char* wanted);

template <class Kind>
variable_list attention(const Attention& how, const variable_list& in) {
  const auto [Z, lse] =
      Kind::op(how.pattern, in[0], in[1], in[2], or_none(in[3]), how.shape, how.slope, how.dropout, how.seed);
  return {Z, lse};
}

template <class Kind>
variable_list attention_gradients(const Attention& how, const Tensor& G, const variable_list& in, const Tensor& Z,
                                  const Tensor& lse) {
  const auto [a, b, c, d] = Kind::backward(how.pattern, G, in[0], in[1], in[2], or_none(in[3]), Z, lse, how.shape,
                                           how.slope, how.dropout, how.seed);
  return {a, b, c, in[3].defined() ? d : Tensor()};
}

template <class Kind>
Pair attention_autograd(TensorList pattern, const Tensor& a, const Tensor& b, const Tensor& c, const Optional& d,
                        SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  const Attention how{pattern.vec(), shape.vec(), slope, dropout, seed};
  const variable_list outputs = differentiable_many(
      Kind::name, {a, b, c, or_undefined(d)}, [&](const variable_list& in) { return attention<Kind>(how, in); },
      [how](const variable_list& grads, const variable_list& in, const variable_list& out, const Wanted&) {
        return attention_gradients<Kind>(how, grads[0], in, out[0], out[1]);
      },
      [&](const variable_list& in, const variable_list& moving, const variable_list&) {
        return variable_list{typename Kind::Composed{how, in}.moved(moving)};
      },
      /*differentiable=*/1, /*keep_outputs=*/true);
  return {outputs[0], outputs[1]};
}

template <class Kind>
Four attention_backward_autograd(TensorList pattern, const Tensor& G, const Tensor& a, const Tensor& b, const Tensor& c,
                                 const Optional& d, const Tensor& Z, const Tensor& lse, SymIntArrayRef shape,
                                 double slope, double dropout, const Optional& seed) {
  using Composed = typename Kind::Composed;
  const Attention how{pattern.vec(), shape.vec(), slope, dropout, seed};
  const auto first_four = [](variable_list all) {
    all.resize(4);
    return all;
  };
  const auto gradients = [&](const Tensor& of_Z, const variable_list& in) {
    const auto [da, db, dc, dd] = Kind::backward(how.pattern, of_Z, in[0], in[1], in[2], d ? Optional(in[3]) : d, Z,
                                                 lse, shape, slope, dropout, seed);
    return variable_list{da, db, dc, dd};
  };
  const variable_list out = differentiable_many(
      Kind::name, {a, b, c, or_undefined(d), G}, [&](const variable_list& in) { return gradients(in[4], in); },
      [how, first_four](const variable_list& u, const variable_list& in, const variable_list&, const Wanted& wanted) {
        const Composed composed{how, first_four(in)};
        variable_list grads = composed.second(in[4], first_four(u));
        grads.push_back(wanted[4] ? composed.moved(first_four(u)) : Tensor());
        return grads;
      },
      [&](const variable_list& in, const variable_list& moving, const variable_list&) {
        const variable_list u = first_four(moving);
        variable_list moved(4);
        if (u[0].defined() || u[1].defined() || u[2].defined() || u[3].defined())
          moved = Composed{how, first_four(in)}.second(in[4], u);
        if (!moving[4].defined()) return moved;
        const variable_list rest = gradients(moving[4], in);
        for (int k = 0; k < 4; ++k) moved[k] = moved[k].defined() ? moved[k] + rest[k] : rest[k];
        return moved;
      },
      /*differentiable=*/d ? 4 : 3, /*keep_outputs=*/false);
  return {out[0], out[1], out[2], out[3]};
}

template <class Kind>
Pair attention_batched(TensorList pattern, const Tensor& a, const Tensor& b, const Tensor& c, const Optional& d,
                       SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  const variable_list tensors = {a, b, c, or_undefined(d), or_undefined(seed)};
  const variable_list out = one_by_one(Kind::name, pattern, tensors, [&](const variable_list& in) {
    return attention<Kind>({pattern.vec(), shape.vec(), slope, dropout, or_none(in[4])}, in);
  });
  return {out[0], out[1]};
}

template <class Kind>
Four attention_backward_batched(TensorList pattern, const Tensor& G, const Tensor& a, const Tensor& b, const Tensor& c,
                                const Optional& d, const Tensor& Z, const Tensor& lse, SymIntArrayRef shape,
                                double slope, double dropout, const Optional& seed) {
  const variable_list tensors = {a, b, c, or_undefined(d), G, Z, lse, or_undefined(seed)};
  const variable_list out = one_by_one(Kind::name, pattern, tensors, [&](const variable_list& in) {
    const auto [da, db, dc, dd] = Kind::backward(pattern, in[4], in[0], in[1], in[2], or_none(in[3]), in[5], in[6],
                                                 shape, slope, dropout, or_none(in[7]));
    return variable_list{da, db, dc, dd};
  });
  return {out[0], out[1], out[2], out[3]};
}

// Z alone, the seed drawn if it is wanted and not given.
template <class Kind>
Tensor attention_alone(TensorList pattern, const Tensor& a, const Tensor& b, const Tensor& c, const Optional& d,
                       SymIntArrayRef shape, double slope, double dropout, std::optional<int64_t> seed) {
  return std::get<0>(Kind::op(pattern, a, b, c, d, shape, slope, dropout, ops::dropout_seed(dropout, seed)));
}

// {Z, weights}: the weights m s are stored, and differentiable like Z.
template <class Kind>
Pair attention_with_weights(TensorList pattern, const Tensor& a, const Tensor& b, const Tensor& c, const Optional& d,
                            SymIntArrayRef shape, double slope, double dropout, std::optional<int64_t> seed) {
  const Attention how{pattern.vec(), shape.vec(), slope, dropout, ops::dropout_seed(dropout, seed)};
  const variable_list in = {a, b, c, or_undefined(d)};
  Kind::check(how, in);
  const typename Kind::Composed composed{how, in};
  return {composed.Z(), composed.softmax.weights()};
}

// The front end.

template <class Kind>
Tensor attention_on(const Pattern& pattern, const Tensor& a, const Tensor& b, const Tensor& c, const Optional& d,
                    const AttentionOptions& options) {
  return attention_alone<Kind>(pattern.tensors_for({a, b, c, or_undefined(d)}), a, b, c, d, pattern.sym_shape(),
                               options.negative_slope, options.dropout, options.seed);
}

template <class Kind>
Pair attention_and_weights_on(const Pattern& pattern, const Tensor& a, const Tensor& b, const Tensor& c,
                              const Optional& d, const AttentionOptions& options) {
  return attention_with_weights<Kind>(pattern.tensors_for({a, b, c, or_undefined(d)}), a, b, c, d, pattern.sym_shape(),
                                      options.negative_slope, options.dropout, options.seed);
}

}  // namespace gossamer
