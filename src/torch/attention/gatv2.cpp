// SPDX-License-Identifier: BSD-3-Clause
// Graph attention of the second kind, see gossamer/gatv2.h. Here the checks, the dispatcher and the composed form:
//
//   t = x_dst[i] + x_src[j] [+ x_edge],  r = leaky_relu(t),  e = att · r,  Z = (m ∘ row_softmax(e)) x_src
//
// With k = slope(t), constant wherever it has a derivative: é = att · (k ∘ ṫ) + u_att · r.
#include <gossamer/kernels/gatv2.h>

#include "attention/attention.h"

namespace gossamer {
namespace {

// The inputs, as a list: x_src, x_dst, att, x_edge (undefined if there is none).
enum { SRC, DST, ATT, EDGE };

struct Composed {
  const Attention& how;
  variable_list in;
  Tensor rows = how.rows(), cols = how.pattern[1];
  Tensor t = on_edges(in), r = at::leaky_relu(t, how.slope);
  EdgeSoftmax softmax{how, (in[ATT] * r).sum(-1)};

  // x_dst[i] + x_src[j] [+ x_edge] at each entry; undefined ones count as zeros, as in a list of tangents.
  Tensor on_edges(const variable_list& x) const {
    const Tensor ends =
        or_zeros(x[DST], in[DST]).index_select(0, rows) + or_zeros(x[SRC], in[SRC]).index_select(0, cols);
    return x[EDGE].defined() ? ends + x[EDGE] : ends;
  }
  Tensor slopes() const { return slope_at(t, how.slope); }
  Tensor moved_scores(const variable_list& u) const {
    const Tensor e_moved = (in[ATT] * slopes() * on_edges(u)).sum(-1);
    return u[ATT].defined() ? e_moved + (u[ATT] * r).sum(-1) : e_moved;
  }
  Tensor Z() const { return softmax.times(softmax.weights(), in[SRC], false); }
  Tensor moved(const variable_list& u) const {
    return softmax.moved(moved_scores(u), in[SRC], or_zeros(u[SRC], in[SRC]));
  }
  // The gradients of the inputs from those of t, of att, and of x_src where it is multiplied.
  variable_list pull(const Tensor& dt, const Tensor& d_att, const Tensor& d_src) const {
    const auto onto = [&](const Tensor& like, const Tensor& at) { return at::zeros_like(like).index_add(0, at, dt); };
    return {d_src + onto(in[SRC], cols), onto(in[DST], rows), d_att, in[EDGE].defined() ? dt : Tensor()};
  }
  // The gradients of ⟨Ź, G⟩, Ź being the tangent of Z when the inputs move by u: a Hessian times u.
  variable_list second(const Tensor& G, const variable_list& u) const {
    const Tensor e_moved = moved_scores(u), k = slopes();
    const Tensor de = softmax.second(e_moved, G, in[SRC], or_zeros(u[SRC], in[SRC])).unsqueeze(-1);
    const Tensor d_moved = softmax.jacobian_times(softmax.dots(G, in[SRC])).unsqueeze(-1);  // of é
    const Tensor dt = (de * in[ATT] + d_moved * or_zeros(u[ATT], in[ATT])) * k;
    const Tensor d_att = (de * r + d_moved * k * on_edges(u)).sum(0);
    return pull(dt, d_att, softmax.times(softmax.dropped(softmax.jacobian_times(e_moved)), G, true));
  }
};

void check(const Attention& how, const variable_list& in) {
  check_attention("gatv2_attention", how, in[SRC]);
  const SymInt H = in[SRC].sym_size(1), d = in[SRC].sym_size(2);
  check_beside("gatv2_attention", "x_dst", in[DST], in[SRC], {how.shape[0], H, d}, "(n_dst, H, d)");
  check_beside("gatv2_attention", "att", in[ATT], in[SRC], {H, d}, "(H, d)");
  if (in[EDGE].defined())
    check_beside("gatv2_attention", "x_edge", in[EDGE], in[SRC], {how.pattern[1].sym_size(0), H, d}, "(nnz, H, d)");
}

template <class T, class I>
kernels::Gatv2<T, I> view(const Attention& how, const PatternTensors& A, const variable_list& in) {
  return {A.view<I>(),
          in[SRC].size(1),
          in[SRC].size(2),
          ptr<T>(in[SRC]),
          ptr<T>(in[DST]),
          ptr<T>(in[ATT]),
          in[EDGE].defined() ? ptr<T>(in[EDGE]) : nullptr,
          static_cast<Sum<T>>(how.slope),
          how.host_dropout()};
}

Pair forward(TensorList pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att, const Optional& x_edge,
             SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  const Attention how{pattern.vec(), shape.vec(), slope, dropout, seed};
  const variable_list given = {x_src, x_dst, att, or_undefined(x_edge)};
  check(how, given);
  const PatternTensors A = unpack("gatv2_attention", pattern, shape, /*t=*/false);
  const SymInt H = x_src.sym_size(1);
  const Tensor Z = at::empty_symint({shape[0], H, x_src.sym_size(2)}, x_src.options());
  const Tensor lse = at::empty_symint({shape[0], H}, x_src.options().dtype(sum_type(x_src)));
  launch("gatv2_attention", x_src, A.indptr, [&]<class T, class I>(auto exec) {
    const variable_list in = contiguous(given);
    kernels::gatv2(exec, view<T, I>(how, A, in), mutable_ptr<T>(Z), mutable_ptr<Sum<T>>(lse));
  });
  return {Z, lse};
}

Four backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
              const Optional& x_edge, const Tensor& Z, const Tensor& lse, SymIntArrayRef shape, double slope,
              double dropout, const Optional& seed) {
  const Attention how{pattern.vec(), shape.vec(), slope, dropout, seed};
  const variable_list given = {x_src, x_dst, att, or_undefined(x_edge)};
  check(how, given);
  const Tensor no_edges = at::empty_symint({0, x_src.sym_size(1), x_src.sym_size(2)}, x_src.options());
  const Tensor d_src = empty_for(x_src), d_dst = empty_for(x_dst), d_att = empty_for(att),
               d_edge = x_edge ? empty_for(*x_edge) : no_edges;
  if (x_src.is_meta()) return {d_src, d_dst, d_att, d_edge};
  const PatternTensors A = unpack("gatv2_attention", pattern, shape, false),
                       At = unpack("gatv2_attention", pattern, shape, true);
  const variable_list in = contiguous(given), from = contiguous({G, Z, lse});
  const int64_t for_att = G.is_cuda() ? kernels::gatv2_cuda_parts(G.size(0)) * in[SRC].size(2) : 0;
  const Tensor scratch = at::empty({2 * A.indices.size(0) + for_att, in[SRC].size(1)}, lse.options());
  launch("gatv2_attention", x_src, A.indptr, [&]<class T, class I>(auto exec) {
    kernels::gatv2_backward(
        exec, view<T, I>(how, A, in), At.view<I>(), ptr<I>(At.perm), ptr<T>(from[0]), ptr<T>(from[1]),
        ptr<Sum<T>>(from[2]), mutable_ptr<Sum<T>>(scratch),
        kernels::Gatv2Gradients<T>{mutable_ptr<T>(d_src), mutable_ptr<T>(d_dst), mutable_ptr<T>(d_att),
                                   x_edge ? mutable_ptr<T>(d_edge) : nullptr});
  });
  return {d_src, d_dst, d_att, d_edge};
}

struct Kind {
  static constexpr const char* name = "gatv2";
  using Composed = gossamer::Composed;
  static constexpr auto op = ops::gatv2;
  static constexpr auto backward = ops::gatv2_backward;
  static constexpr auto check = gossamer::check;
};

const Op<decltype(ops::gatv2)> forward_op{{
    .schema = "gatv2(Tensor[] pattern, Tensor x_src, Tensor x_dst, Tensor att, Tensor? x_edge, "
              "SymInt[] shape, float slope, float dropout, Tensor? seed) -> (Tensor Z, Tensor lse)",
    .forward = forward,
    .autograd = attention_autograd<Kind>,
    .batched = attention_batched<Kind>,
    .autocast = true,
}};
const Op<decltype(ops::gatv2_backward)> backward_op{{
    .schema = "gatv2_backward(Tensor[] pattern, Tensor G, Tensor x_src, Tensor x_dst, Tensor att, Tensor? x_edge, "
              "Tensor Z, Tensor lse, SymInt[] shape, float slope, float dropout, Tensor? seed) -> "
              "(Tensor dx_src, Tensor dx_dst, Tensor datt, Tensor dx_edge)",
    .forward = backward,
    .autograd = attention_backward_autograd<Kind>,
    .batched = attention_backward_batched<Kind>,
}};

}  // namespace

Pair ops::gatv2(TensorList pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att, const Optional& x_edge,
                SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  return forward_op(pattern, x_src, x_dst, att, x_edge, shape, slope, dropout, seed);
}

Four ops::gatv2_backward(TensorList pattern, const Tensor& G, const Tensor& x_src, const Tensor& x_dst,
                         const Tensor& att, const Optional& x_edge, const Tensor& Z, const Tensor& lse,
                         SymIntArrayRef shape, double slope, double dropout, const Optional& seed) {
  return backward_op(pattern, G, x_src, x_dst, att, x_edge, Z, lse, shape, slope, dropout, seed);
}

static const Composites composites =
    Composites()
        .def(
            "gatv2_attention(Tensor[] pattern, Tensor x_src, Tensor x_dst, Tensor att, Tensor? x_edge, "
            "SymInt[] shape, float slope, float dropout, int? seed) -> Tensor",
            attention_alone<Kind>)
        .def(
            "gatv2_with_weights(Tensor[] pattern, Tensor x_src, Tensor x_dst, Tensor att, Tensor? x_edge, "
            "SymInt[] shape, float slope, float dropout, int? seed) -> (Tensor Z, Tensor weights)",
            attention_with_weights<Kind>);

Tensor gatv2_attention(const Pattern& pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                       const Optional& x_edge, const AttentionOptions& options) {
  return attention_on<Kind>(pattern, x_src, x_dst, att, x_edge, options);
}

Pair gatv2_with_weights(const Pattern& pattern, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                        const Optional& x_edge, const AttentionOptions& options) {
  return attention_and_weights_on<Kind>(pattern, x_src, x_dst, att, x_edge, options);
}

}  // namespace gossamer
