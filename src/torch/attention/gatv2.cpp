// SPDX-License-Identifier: BSD-3-Clause
// Graph attention of the second kind, see kernels/gatv2.h. Here are the ops, their checks, and the composed form:
//
//   t = x_dst[i] + x_src[j] [+ x_edge],  r = leaky_relu(t),  e = att · r,  Z = (m ∘ row_softmax(e)) x_src
//
// Let k be the derivative of leaky_relu at t. It is constant wherever there is one, so ė = att · (k ∘ ṫ) + ȧtt · r.
#include <gossamer/kernels/gatv2_backward.h>

#include "attention/attention.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "gatv2_attention";

struct Inputs {
  Tensor x_src, x_dst, att, x_edge;  // x_edge is undefined if there is none.
};

// See composed.h for the formulas.
struct Composed {
  const AttentionSettings& settings;
  Inputs inputs;
  Tensor rows = settings.rows(), cols = settings.pattern[1];
  Tensor t = on_edges(inputs), r = at::leaky_relu(t, settings.slope);
  EdgeSoftmax softmax{settings, (inputs.att * r).sum(-1)};

  // x_dst[i] + x_src[j] [+ x_edge] at each entry of the pattern. Tangents may be undefined, which counts as zero.
  Tensor on_edges(const Inputs& from) const {
    const Tensor ends = or_zeros(from.x_dst, inputs.x_dst).index_select(0, rows) +
                        or_zeros(from.x_src, inputs.x_src).index_select(0, cols);
    return from.x_edge.defined() ? ends + from.x_edge : ends;
  }
  Tensor k() const { return leaky_relu_slope(t, settings.slope); }
  Tensor Z() const { return softmax.product(softmax.weights(), inputs.x_src, /*t=*/false); }
  Tensor jvp_of_scores(const Inputs& tangents) const {
    const Tensor e_tangent = (inputs.att * k() * on_edges(tangents)).sum(-1);
    return tangents.att.defined() ? e_tangent + (tangents.att * r).sum(-1) : e_tangent;
  }
  // The tangent of Z.
  Tensor jvp(const Inputs& tangents) const {
    return softmax.jvp(jvp_of_scores(tangents), inputs.x_src, or_zeros(tangents.x_src, inputs.x_src));
  }
  // The gradients of the inputs from those of t, of att, and of x_src where Z = (m ∘ s) x_src multiplies it.
  Inputs to_inputs(const Tensor& dt, const Tensor& d_att, const Tensor& dx_src) const {
    const auto summed = [&](const Tensor& like, const Tensor& nodes) {
      return at::zeros_like(like).index_add(0, nodes, dt);
    };
    return {dx_src + summed(inputs.x_src, cols), summed(inputs.x_dst, rows), d_att,
            inputs.x_edge.defined() ? dt : Tensor()};
  }
  // The Hessian of ⟨Z, G⟩ times the tangents.
  Inputs hvp(const Tensor& G, const Inputs& tangents) const {
    const Tensor e_tangent = jvp_of_scores(tangents), slopes = k();
    const Tensor x_tangent = or_zeros(tangents.x_src, inputs.x_src), att_tangent = or_zeros(tangents.att, inputs.att);
    const Tensor de = softmax.hvp_of_scores(e_tangent, G, inputs.x_src, x_tangent).unsqueeze(-1);
    const Tensor de_tangent = softmax.jacobian_times(softmax.masked_dots(G, inputs.x_src)).unsqueeze(-1);  // ∂q/∂ė
    const Tensor dt = (de * inputs.att + de_tangent * att_tangent) * slopes;
    const Tensor d_att = (de * r + de_tangent * slopes * on_edges(tangents)).sum(0);
    return to_inputs(dt, d_att, softmax.hvp_of_features(e_tangent, G));
  }
};

void check(const AttentionSettings& settings, const Inputs& inputs) {
  check_attention(op_name, settings, inputs.x_src);
  const SymInt H = inputs.x_src.sym_size(1), d = inputs.x_src.sym_size(2), edges = settings.pattern[1].sym_size(0);
  check_input(op_name, "x_dst", inputs.x_dst, inputs.x_src, {settings.shape[0], H, d}, "(n_dst, H, d)");
  check_input(op_name, "att", inputs.att, inputs.x_src, {H, d}, "(H, d)");
  if (inputs.x_edge.defined())
    check_input(op_name, "x_edge", inputs.x_edge, inputs.x_src, {edges, H, d}, "(nnz, H, d)");
}

template <class T, class I>
kernels::Gatv2<T, I> view(const AttentionSettings& settings, const PatternTensors& A, const Inputs& inputs) {
  return {A.view<I>(),
          inputs.x_src.size(1),
          inputs.x_src.size(2),
          ptr<T>(inputs.x_src),
          ptr<T>(inputs.x_dst),
          ptr<T>(inputs.att),
          inputs.x_edge.defined() ? ptr<T>(inputs.x_edge) : nullptr,
          static_cast<Sum<T>>(settings.slope),
          settings.draws()};
}

AttentionOutputs forward(TensorList pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                         const Optional& x_edge, SymIntArrayRef shape, double slope, double dropout,
                         const Optional& seed, const Optional& keys) {
  const AttentionSettings settings{pattern.vec(), shape.vec(), slope, dropout, seed, keys};
  const Inputs inputs{x_src, x_dst, att, or_undefined(x_edge)};
  check(settings, inputs);
  const PatternTensors A = unpack(op_name, pattern, shape, /*t=*/false);
  const SymInt H = x_src.sym_size(1);
  const Tensor Z = empty_result({shape[0], H, x_src.sym_size(2)}, x_src.options());
  const Tensor lse = empty_result({shape[0], H}, x_src.options().dtype(sum_type(x_src)));
  launch(op_name, x_src, A.indptr, [&]<class T, class I>(auto exec) {
    const Inputs compact = contiguous_inputs(inputs);
    const auto in = view<T, I>(settings, A, compact);
    if constexpr (Host<decltype(exec)>) {
      kernels::gatv2(exec, in, mutable_ptr<T>(Z), mutable_ptr<Sum<T>>(lse));
    } else {
      const Tensor scratch = scratch_for(Z, kernels::attention_cuda_scratch(in.A.nnz, in.heads, in.width));
      kernels::gatv2(exec, in, mutable_ptr<T>(Z), mutable_ptr<Sum<T>>(lse), mutable_ptr<Sum<T>>(scratch));
    }
  });
  return {Z, lse};
}

AttentionGradients backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& x_dst,
                            const Tensor& att, const Optional& x_edge, const Tensor& Z, const Tensor& lse,
                            SymIntArrayRef shape, double slope, double dropout, const Optional& seed,
                            const Optional& keys) {
  const AttentionSettings settings{pattern.vec(), shape.vec(), slope, dropout, seed, keys};
  const Inputs inputs{x_src, x_dst, att, or_undefined(x_edge)};
  check(settings, inputs);
  check_outputs(op_name, settings, x_src, G, Z, lse);
  const Tensor no_edges = empty_result({0, x_src.sym_size(1), x_src.sym_size(2)}, x_src.options());
  const Tensor d_src = empty_for(x_src), d_dst = empty_for(x_dst), d_att = empty_for(att),
               d_edge = x_edge ? empty_for(*x_edge) : no_edges;
  if (x_src.is_meta()) return {d_src, d_dst, d_att, d_edge};
  const PatternTensors A = unpack(op_name, pattern, shape, /*t=*/false),
                       At = unpack(op_name, pattern, shape, /*t=*/true);
  const Inputs compact = contiguous_inputs(inputs);
  const Tensor G_ = G.contiguous(), Z_ = Z.contiguous(), lse_ = lse.contiguous();
  const int64_t edges = A.indices.size(0), heads = x_src.size(1);
  const Tensor scratch = scratch_for(
      x_src, G.is_cuda() ? kernels::gatv2_cuda_scratch(G.size(0), edges, heads, x_src.size(2)) : 2 * edges * heads);
  launch(op_name, x_src, A.indptr, [&]<class T, class I>(auto exec) {
    const kernels::Gatv2Gradients<T> gradients{mutable_ptr<T>(d_src), mutable_ptr<T>(d_dst), mutable_ptr<T>(d_att),
                                               x_edge ? mutable_ptr<T>(d_edge) : nullptr};
    kernels::gatv2_backward(exec, view<T, I>(settings, A, compact), At.view<I>(), ptr<I>(At.perm), ptr<T>(G_),
                            ptr<T>(Z_), ptr<Sum<T>>(lse_), mutable_ptr<Sum<T>>(scratch), gradients);
  });
  return {d_src, d_dst, d_att, d_edge};
}

struct Gatv2 {
  static constexpr const char* name = "gatv2";
  using Inputs = gossamer::Inputs;
  using Composed = gossamer::Composed;
  static constexpr auto forward = ops::gatv2;
  static constexpr auto backward = ops::gatv2_backward;
  static constexpr auto check = gossamer::check;
};

const Op<decltype(ops::gatv2)> forward_op{{
    .schema = "gatv2(Tensor[] pattern, Tensor x_src, Tensor x_dst, Tensor att, Tensor? x_edge, "
              "SymInt[] shape, float slope, float dropout, Tensor? seed, Tensor? keys=None) -> (Tensor Z, Tensor lse)",
    .forward = forward,
    .autograd = attention_autograd<Gatv2>,
    .batched = attention_batched<Gatv2>,
    .autocast = true,
}};
const Op<decltype(ops::gatv2_backward)> backward_op{{
    .schema = "gatv2_backward(Tensor[] pattern, Tensor G, Tensor x_src, Tensor x_dst, Tensor att, Tensor? x_edge, "
              "Tensor Z, Tensor lse, SymInt[] shape, float slope, float dropout, Tensor? seed, Tensor? keys=None) -> "
              "(Tensor dx_src, Tensor dx_dst, Tensor datt, Tensor dx_edge)",
    .forward = backward,
    .autograd = attention_backward_autograd<Gatv2>,
    .batched = attention_backward_batched<Gatv2>,
}};

}  // namespace

AttentionOutputs ops::gatv2(TensorList pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                            const Optional& x_edge, SymIntArrayRef shape, double slope, double dropout,
                            const Optional& seed, const Optional& keys) {
  return forward_op(pattern, x_src, x_dst, att, x_edge, shape, slope, dropout, seed, keys);
}

AttentionGradients ops::gatv2_backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& x_dst,
                                       const Tensor& att, const Optional& x_edge, const Tensor& Z, const Tensor& lse,
                                       SymIntArrayRef shape, double slope, double dropout, const Optional& seed,
                                       const Optional& keys) {
  return backward_op(pattern, G, x_src, x_dst, att, x_edge, Z, lse, shape, slope, dropout, seed, keys);
}

static const Composites composites =
    Composites()
        .def(
            "gatv2_attention(Tensor[] pattern, Tensor x_src, Tensor x_dst, Tensor att, Tensor? x_edge, "
            "SymInt[] shape, float slope, float dropout, int? seed, Tensor? keys=None) -> Tensor",
            attention_op<Gatv2>)
        .def(
            "gatv2_with_weights(Tensor[] pattern, Tensor x_src, Tensor x_dst, Tensor att, Tensor? x_edge, "
            "SymInt[] shape, float slope, float dropout, int? seed, Tensor? keys=None) -> (Tensor Z, Tensor weights)",
            attention_with_weights_op<Gatv2>);

Tensor gatv2_attention(const Pattern& pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                       const Optional& x_edge, const AttentionOptions& options) {
  return attention<Gatv2>(pattern, {x_src, x_dst, att, or_undefined(x_edge)}, options);
}

AttentionOutputs gatv2_with_weights(const Pattern& pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                                    const Optional& x_edge, const AttentionOptions& options) {
  return attention_with_weights<Gatv2>(pattern, {x_src, x_dst, att, or_undefined(x_edge)}, options);
}

}  // namespace gossamer
