// SPDX-License-Identifier: BSD-3-Clause
// Graph attention, see gossamer/gat.h. Here the checks, the dispatcher and the composed form:
//
//   t = alpha_dst[i] + alpha_src[j] [+ alpha_edge],  e = leaky_relu(t),  Z = (m ∘ row_softmax(e)) x_src
//
// With k = slope(t), constant wherever it has a derivative: é = k ∘ ṫ, and a gradient of e gives that of t by k.
#include <gossamer/kernels/gat.h>

#include "attention/attention.h"

namespace gossamer {
namespace {

// The inputs, as a list: x_src, alpha_src, alpha_dst, alpha_edge (undefined if there is none).
enum { X, SRC, DST, EDGE };

struct Composed {
  const Attention& how;
  variable_list in;
  Tensor t = on_edges(in);
  EdgeSoftmax softmax{how, at::leaky_relu(t, how.slope)};

  // The sum of the three alphas at each entry; undefined ones count as zeros, as in a list of tangents.
  Tensor on_edges(const variable_list& alpha) const {
    const Tensor ends = ops::spread(how.pattern, or_zeros(alpha[DST], in[DST]), how.shape, /*cols=*/false) +
                        ops::spread(how.pattern, or_zeros(alpha[SRC], in[SRC]), how.shape, /*cols=*/true);
    return alpha[EDGE].defined() ? ends + alpha[EDGE] : ends;
  }
  Tensor Z() const { return softmax.times(softmax.weights(), in[X], false); }
  Tensor moved(const variable_list& u) const {
    return softmax.moved(slope_at(t, how.slope) * on_edges(u), in[X], or_zeros(u[X], in[X]));
  }
  // The gradients of the inputs from those of x_src and of the scores.
  variable_list pull(const Tensor& dX, const Tensor& de) const {
    const Tensor dt = slope_at(t, how.slope) * de;
    return {dX, ops::sum(how.pattern, dt, how.shape, 0), ops::row_sum(how.pattern, dt, how.shape),
            in[EDGE].defined() ? dt : Tensor()};
  }
  // The gradients of ⟨Ź, G⟩, Ź being the tangent of Z when the inputs move by u: one a Hessian-vector product.
  variable_list second(const Tensor& G, const variable_list& u) const {
    const Tensor e_moved = slope_at(t, how.slope) * on_edges(u);
    const Tensor dX = softmax.times(softmax.dropped(softmax.jacobian_times(e_moved)), G, true);
    return pull(dX, softmax.second(e_moved, G, in[X], or_zeros(u[X], in[X])));
  }
};

void check(const Attention& how, const variable_list& in) {
  check_attention("gat_attention", how, in[X]);
  const SymInt H = in[X].sym_size(1);
  check_beside("gat_attention", "alpha_src", in[SRC], in[X], {how.shape[1], H}, "(n_src, H)");
  check_beside("gat_attention", "alpha_dst", in[DST], in[X], {how.shape[0], H}, "(n_dst, H)");
  if (in[EDGE].defined())
    check_beside("gat_attention", "alpha_edge", in[EDGE], in[X], {how.pattern[1].sym_size(0), H}, "(nnz, H)");
}

template <class T, class I>
kernels::Gat<T, I> view(const Attention& how, const PatternTensors& A, const variable_list& in) {
  return {A.view<I>(),
          in[X].size(1),
          in[X].size(2),
          ptr<T>(in[X]),
          ptr<T>(in[SRC]),
          ptr<T>(in[DST]),
          in[EDGE].defined() ? ptr<T>(in[EDGE]) : nullptr,
          static_cast<Sum<T>>(how.slope),
          how.host_dropout()};
}

Pair forward(TensorList pattern, const Tensor& x_src, const Tensor& alpha_src, const Tensor& alpha_dst,
             const Optional& alpha_edge, SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  const Attention how{pattern.vec(), shape.vec(), slope, dropout, seed};
  const variable_list given = {x_src, alpha_src, alpha_dst, or_undefined(alpha_edge)};
  check(how, given);
  const PatternTensors A = unpack("gat_attention", pattern, shape, /*t=*/false);
  const SymInt H = x_src.sym_size(1);
  const Tensor Z = at::empty_symint({shape[0], H, x_src.sym_size(2)}, x_src.options());
  const Tensor lse = at::empty_symint({shape[0], H}, x_src.options().dtype(sum_type(x_src)));
  launch("gat_attention", x_src, A.indptr, [&]<class T, class I>(auto exec) {
    const variable_list in = contiguous(given);
    kernels::gat(exec, view<T, I>(how, A, in), mutable_ptr<T>(Z), mutable_ptr<Sum<T>>(lse));
  });
  return {Z, lse};
}

Four backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& alpha_src,
              const Tensor& alpha_dst, const Optional& alpha_edge, const Tensor& Z, const Tensor& lse,
              SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  const Attention how{pattern.vec(), shape.vec(), slope, dropout, seed};
  const variable_list given = {x_src, alpha_src, alpha_dst, or_undefined(alpha_edge)};
  check(how, given);
  const Tensor no_edges = at::empty_symint({0, x_src.sym_size(1)}, x_src.options());
  const Tensor dX = empty_for(x_src), d_src = empty_for(alpha_src), d_dst = empty_for(alpha_dst),
               d_edge = alpha_edge ? empty_for(*alpha_edge) : no_edges;
  if (x_src.is_meta()) return {dX, d_src, d_dst, d_edge};
  const PatternTensors A = unpack("gat_attention", pattern, shape, false),
                       At = unpack("gat_attention", pattern, shape, true);
  const variable_list in = contiguous(given), from = contiguous({G, Z, lse});
  const int64_t edges = A.indices.size(0), scratch_rows = G.is_cuda() ? 2 * edges : edges + 3 * G.size(0);
  const Tensor scratch = at::empty({scratch_rows, in[X].size(1)}, lse.options());
  launch("gat_attention", x_src, A.indptr, [&]<class T, class I>(auto exec) {
    kernels::gat_backward(exec, view<T, I>(how, A, in), At.view<I>(), ptr<I>(At.perm), ptr<T>(from[0]), ptr<T>(from[1]),
                          ptr<Sum<T>>(from[2]), mutable_ptr<Sum<T>>(scratch),
                          kernels::GatGradients<T>{mutable_ptr<T>(dX), mutable_ptr<T>(d_src), mutable_ptr<T>(d_dst),
                                                   alpha_edge ? mutable_ptr<T>(d_edge) : nullptr});
  });
  return {dX, d_src, d_dst, d_edge};
}

struct Kind {
  static constexpr const char* name = "gat";
  using Composed = gossamer::Composed;
  static constexpr auto op = ops::gat;
  static constexpr auto backward = ops::gat_backward;
  static constexpr auto check = gossamer::check;
};

const Op<decltype(ops::gat)> forward_op{{
    .schema = "gat(Tensor[] pattern, Tensor x_src, Tensor alpha_src, Tensor alpha_dst, Tensor? alpha_edge, "
              "SymInt[] shape, float slope, float dropout, Tensor? seed) -> (Tensor Z, Tensor lse)",
    .forward = forward,
    .autograd = attention_autograd<Kind>,
    .batched = attention_batched<Kind>,
    .autocast = true,
}};
const Op<decltype(ops::gat_backward)> backward_op{{
    .schema = "gat_backward(Tensor[] pattern, Tensor G, Tensor x_src, Tensor alpha_src, Tensor alpha_dst, Tensor? "
              "alpha_edge, "
              "Tensor Z, Tensor lse, SymInt[] shape, float slope, float dropout, Tensor? seed) -> "
              "(Tensor dx_src, Tensor dalpha_src, Tensor dalpha_dst, Tensor dalpha_edge)",
    .forward = backward,
    .autograd = attention_backward_autograd<Kind>,
    .batched = attention_backward_batched<Kind>,
}};

}  // namespace

Pair ops::gat(TensorList pattern, const Tensor& x_src, const Tensor& alpha_src, const Tensor& alpha_dst,
              const Optional& alpha_edge, SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  return forward_op(pattern, x_src, alpha_src, alpha_dst, alpha_edge, shape, slope, dropout, seed);
}

Four ops::gat_backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& alpha_src,
                       const Tensor& alpha_dst, const Optional& alpha_edge, const Tensor& Z, const Tensor& lse,
                       SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  return backward_op(pattern, G, x_src, alpha_src, alpha_dst, alpha_edge, Z, lse, shape, slope, dropout, seed);
}

static const Composites composites =
    Composites()
        .def(
            "gat_attention(Tensor[] pattern, Tensor x_src, Tensor alpha_src, Tensor alpha_dst, Tensor? alpha_edge, "
            "SymInt[] shape, float slope, float dropout, int? seed) -> Tensor",
            attention_alone<Kind>)
        .def(
            "gat_with_weights(Tensor[] pattern, Tensor x_src, Tensor alpha_src, Tensor alpha_dst, Tensor? alpha_edge, "
            "SymInt[] shape, float slope, float dropout, int? seed) -> (Tensor Z, Tensor weights)",
            attention_with_weights<Kind>);

Tensor gat_attention(const Pattern& pattern, const Tensor& x_src, const Tensor& alpha_src, const Tensor& alpha_dst,
                     const Optional& alpha_edge, const AttentionOptions& options) {
  return attention_on<Kind>(pattern, x_src, alpha_src, alpha_dst, alpha_edge, options);
}

Pair gat_with_weights(const Pattern& pattern, const Tensor& x_src, const Tensor& alpha_src, const Tensor& alpha_dst,
                      const Optional& alpha_edge, const AttentionOptions& options) {
  return attention_and_weights_on<Kind>(pattern, x_src, alpha_src, alpha_dst, alpha_edge, options);
}

}  // namespace gossamer
