// SPDX-License-Identifier: BSD-3-Clause
// Graph attention, see kernels/gat.h. Here are the ops, their checks, and the composed form:
//
//   t = alpha_dst[i] + alpha_src[j] [+ alpha_edge],  e = leaky_relu(t),  Z = (m ∘ row_softmax(e)) x_src
//
// Let k be the derivative of leaky_relu at t. It is constant wherever there is one, so ė = k ∘ ṫ, and a gradient of e
// becomes one of t by the factor k.
#include <gossamer/kernels/gat.h>

#include "attention/attention.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "gat_attention";

struct Inputs {
  Tensor x_src, alpha_src, alpha_dst, alpha_edge;  // alpha_edge is undefined if there is none.
};

// See composed.h for the formulas.
struct Composed {
  const AttentionSettings& settings;
  Inputs inputs;
  Tensor t = on_edges(inputs);
  EdgeSoftmax softmax{settings, at::leaky_relu(t, settings.slope)};

  // The sum of the alphas at each entry of the pattern. Tangents may be undefined, which counts as zero.
  Tensor on_edges(const Inputs& from) const {
    const auto spread = [&](const Tensor& alpha, bool cols) {
      return ops::spread(settings.pattern, alpha, settings.shape, cols);
    };
    const Tensor ends = spread(or_zeros(from.alpha_dst, inputs.alpha_dst), /*cols=*/false) +
                        spread(or_zeros(from.alpha_src, inputs.alpha_src), /*cols=*/true);
    return from.alpha_edge.defined() ? ends + from.alpha_edge : ends;
  }
  Tensor k() const { return leaky_relu_slope(t, settings.slope); }
  Tensor Z() const { return softmax.product(softmax.weights(), inputs.x_src, /*t=*/false); }
  // The tangent of Z.
  Tensor jvp(const Inputs& tangents) const {
    return softmax.jvp(k() * on_edges(tangents), inputs.x_src, or_zeros(tangents.x_src, inputs.x_src));
  }
  // The gradients of the inputs from that of x_src and that of the scores.
  Inputs to_inputs(const Tensor& dx_src, const Tensor& de) const {
    const Tensor dt = k() * de;
    return {dx_src, ops::sum(settings.pattern, dt, settings.shape, 0),
            ops::row_sum(settings.pattern, dt, settings.shape), inputs.alpha_edge.defined() ? dt : Tensor()};
  }
  // The Hessian of ⟨Z, G⟩ times the tangents.
  Inputs hvp(const Tensor& G, const Inputs& tangents) const {
    const Tensor e_tangent = k() * on_edges(tangents);
    const Tensor dx_src = softmax.hvp_of_features(e_tangent, G);
    const Tensor x_tangent = or_zeros(tangents.x_src, inputs.x_src);
    return to_inputs(dx_src, softmax.hvp_of_scores(e_tangent, G, inputs.x_src, x_tangent));
  }
};

void check(const AttentionSettings& settings, const Inputs& inputs) {
  check_attention(op_name, settings, inputs.x_src);
  const SymInt H = inputs.x_src.sym_size(1), edges = settings.pattern[1].sym_size(0);
  check_input(op_name, "alpha_src", inputs.alpha_src, inputs.x_src, {settings.shape[1], H}, "(n_src, H)");
  check_input(op_name, "alpha_dst", inputs.alpha_dst, inputs.x_src, {settings.shape[0], H}, "(n_dst, H)");
  if (inputs.alpha_edge.defined())
    check_input(op_name, "alpha_edge", inputs.alpha_edge, inputs.x_src, {edges, H}, "(nnz, H)");
}

template <class T, class I>
kernels::Gat<T, I> view(const AttentionSettings& settings, const PatternTensors& A, const Inputs& inputs) {
  return {A.view<I>(),
          inputs.x_src.size(1),
          inputs.x_src.size(2),
          ptr<T>(inputs.x_src),
          ptr<T>(inputs.alpha_src),
          ptr<T>(inputs.alpha_dst),
          inputs.alpha_edge.defined() ? ptr<T>(inputs.alpha_edge) : nullptr,
          static_cast<Sum<T>>(settings.slope),
          settings.draws()};
}

AttentionOutputs forward(TensorList pattern, const Tensor& x_src, const Tensor& alpha_src, const Tensor& alpha_dst,
                         const Optional& alpha_edge, SymIntArrayRef shape, double slope, double dropout,
                         const Optional& seed, const Optional& keys) {
  const AttentionSettings settings{pattern.vec(), shape.vec(), slope, dropout, seed, keys};
  const Inputs inputs{x_src, alpha_src, alpha_dst, or_undefined(alpha_edge)};
  check(settings, inputs);
  const PatternTensors A = unpack(op_name, pattern, shape, /*t=*/false);
  const SymInt H = x_src.sym_size(1);
  const Tensor Z = empty_result({shape[0], H, x_src.sym_size(2)}, x_src.options());
  const Tensor lse = empty_result({shape[0], H}, x_src.options().dtype(sum_type(x_src)));
  launch(op_name, x_src, A.indptr, [&]<class T, class I>(auto exec) {
    const Inputs compact = contiguous_inputs(inputs);
    const auto in = view<T, I>(settings, A, compact);
    if constexpr (Host<decltype(exec)>) {
      kernels::gat(exec, in, mutable_ptr<T>(Z), mutable_ptr<Sum<T>>(lse));
    } else {
      const Tensor scratch = scratch_for(Z, kernels::attention_cuda_scratch(in.A.nnz, in.heads, in.width));
      kernels::gat(exec, in, mutable_ptr<T>(Z), mutable_ptr<Sum<T>>(lse), mutable_ptr<Sum<T>>(scratch));
    }
  });
  return {Z, lse};
}

AttentionGradients backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& alpha_src,
                            const Tensor& alpha_dst, const Optional& alpha_edge, const Tensor& Z, const Tensor& lse,
                            SymIntArrayRef shape, double slope, double dropout, const Optional& seed,
                            const Optional& keys) {
  const AttentionSettings settings{pattern.vec(), shape.vec(), slope, dropout, seed, keys};
  const Inputs inputs{x_src, alpha_src, alpha_dst, or_undefined(alpha_edge)};
  check(settings, inputs);
  check_outputs(op_name, settings, x_src, G, Z, lse);
  const Tensor no_edges = empty_result({0, x_src.sym_size(1)}, x_src.options());
  const Tensor dx_src = empty_for(x_src), d_src = empty_for(alpha_src), d_dst = empty_for(alpha_dst),
               d_edge = alpha_edge ? empty_for(*alpha_edge) : no_edges;
  if (x_src.is_meta()) return {dx_src, d_src, d_dst, d_edge};
  const PatternTensors A = unpack(op_name, pattern, shape, /*t=*/false),
                       At = unpack(op_name, pattern, shape, /*t=*/true);
  const Inputs compact = contiguous_inputs(inputs);
  const Tensor G_ = G.contiguous(), Z_ = Z.contiguous(), lse_ = lse.contiguous();
  const int64_t edges = A.indices.size(0), heads = x_src.size(1);
  const Tensor scratch = scratch_for(
      x_src, G.is_cuda() ? kernels::gat_cuda_scratch(edges, heads, x_src.size(2)) : (edges + 3 * G.size(0)) * heads);
  launch(op_name, x_src, A.indptr, [&]<class T, class I>(auto exec) {
    const kernels::GatGradients<T> gradients{mutable_ptr<T>(dx_src), mutable_ptr<T>(d_src), mutable_ptr<T>(d_dst),
                                             alpha_edge ? mutable_ptr<T>(d_edge) : nullptr};
    kernels::gat_backward(exec, view<T, I>(settings, A, compact), At.view<I>(), ptr<I>(At.perm), ptr<T>(G_), ptr<T>(Z_),
                          ptr<Sum<T>>(lse_), mutable_ptr<Sum<T>>(scratch), gradients);
  });
  return {dx_src, d_src, d_dst, d_edge};
}

struct Gat {
  static constexpr const char* name = "gat";
  using Inputs = gossamer::Inputs;
  using Composed = gossamer::Composed;
  static constexpr auto forward = ops::gat;
  static constexpr auto backward = ops::gat_backward;
  static constexpr auto check = gossamer::check;
};

const Op<decltype(ops::gat)> forward_op{{
    .schema = "gat(Tensor[] pattern, Tensor x_src, Tensor alpha_src, Tensor alpha_dst, Tensor? alpha_edge, "
              "SymInt[] shape, float slope, float dropout, Tensor? seed, Tensor? keys=None) -> (Tensor Z, Tensor lse)",
    .forward = forward,
    .autograd = attention_autograd<Gat>,
    .batched = attention_batched<Gat>,
    .autocast = true,
}};
const Op<decltype(ops::gat_backward)> backward_op{{
    .schema = "gat_backward(Tensor[] pattern, Tensor G, Tensor x_src, Tensor alpha_src, Tensor alpha_dst, "
              "Tensor? alpha_edge, Tensor Z, Tensor lse, SymInt[] shape, float slope, float dropout, Tensor? seed, "
              "Tensor? keys=None) -> "
              "(Tensor dx_src, Tensor dalpha_src, Tensor dalpha_dst, Tensor dalpha_edge)",
    .forward = backward,
    .autograd = attention_backward_autograd<Gat>,
    .batched = attention_backward_batched<Gat>,
}};

}  // namespace

AttentionOutputs ops::gat(TensorList pattern, const Tensor& x_src, const Tensor& alpha_src, const Tensor& alpha_dst,
                          const Optional& alpha_edge, SymIntArrayRef shape, double slope, double dropout,
                          const Optional& seed, const Optional& keys) {
  return forward_op(pattern, x_src, alpha_src, alpha_dst, alpha_edge, shape, slope, dropout, seed, keys);
}

AttentionGradients ops::gat_backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& alpha_src,
                                     const Tensor& alpha_dst, const Optional& alpha_edge, const Tensor& Z,
                                     const Tensor& lse, SymIntArrayRef shape, double slope, double dropout,
                                     const Optional& seed, const Optional& keys) {
  return backward_op(pattern, G, x_src, alpha_src, alpha_dst, alpha_edge, Z, lse, shape, slope, dropout, seed, keys);
}

static const Composites composites =
    Composites()
        .def(
            "gat_attention(Tensor[] pattern, Tensor x_src, Tensor alpha_src, Tensor alpha_dst, Tensor? alpha_edge, "
            "SymInt[] shape, float slope, float dropout, int? seed, Tensor? keys=None) -> Tensor",
            attention_op<Gat>)
        .def(
            "gat_with_weights(Tensor[] pattern, Tensor x_src, Tensor alpha_src, Tensor alpha_dst, Tensor? alpha_edge, "
            "SymInt[] shape, float slope, float dropout, int? seed, Tensor? keys=None) -> (Tensor Z, Tensor weights)",
            attention_with_weights_op<Gat>);

Tensor gat_attention(const Pattern& pattern, const Tensor& x_src, const Tensor& alpha_src, const Tensor& alpha_dst,
                     const Optional& alpha_edge, const AttentionOptions& options) {
  return attention<Gat>(pattern, {x_src, alpha_src, alpha_dst, or_undefined(alpha_edge)}, options);
}

AttentionOutputs gat_with_weights(const Pattern& pattern, const Tensor& x_src, const Tensor& alpha_src,
                                  const Tensor& alpha_dst, const Optional& alpha_edge,
                                  const AttentionOptions& options) {
  return attention_with_weights<Gat>(pattern, {x_src, alpha_src, alpha_dst, or_undefined(alpha_edge)}, options);
}

}  // namespace gossamer
