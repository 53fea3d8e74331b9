// SPDX-License-Identifier: BSD-3-Clause
// Two ops that differentiate into each other, and whose sums do not depend on the number of threads:
//   dot(u, v) = Σ u v        du = scale(v, g)        dv = scale(u, g)
//   scale(u, s) = s u        du = scale(g, s)        ds = dot(g, u)
#include <gossamer/kernels/dot.h>

#include <ATen/ATen.h>

#include <gossamer/products.h>
#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"

namespace gossamer {
namespace {

Tensor dot_forward(const Tensor& u, const Tensor& v) {
  TORCH_CHECK_VALUE(u.sym_sizes() == v.sym_sizes(), "dot: u has shape ", shape_text(u), " but v has ", shape_text(v));
  check_same_dtype("dot", "v", v, "u", u);
  TORCH_CHECK_VALUE(u.device() == v.device(), "dot: u is on ", u.device(), " but v is on ", v.device());
  if (u.is_cuda()) return u.mul(v).sum();
  const Tensor out = at::empty({}, u.options());
  if (u.is_meta()) return out;
  const Tensor in_u = u.contiguous(), in_v = v.contiguous();
  with_types("dot", u.scalar_type(), at::kInt, [&]<class T, class> {
    *mutable_ptr<T>(out) = static_cast<T>(kernels::dot(torch_pool(), in_u.numel(), ptr<T>(in_u), ptr<T>(in_v)));
  });
  return out;
}

Tensor scale_forward(const Tensor& u, const Tensor& s) {
  TORCH_CHECK_VALUE(s.dim() == 0, "scale: the factor must be a number or a 0-dim tensor, not shape ", shape_text(s));
  check_same_dtype("scale", "the factor", s, "the matrix", u);
  return u.mul(s);
}

Tensor dot_autograd(const Tensor& u, const Tensor& v) {
  return differentiable(
      "dot", {u, v}, [](const variable_list& in) { return ops::dot(in[0], in[1]); },
      [](const Tensor& G, const variable_list& in, const Tensor&, const Wanted& wanted) {
        variable_list grads(2);
        if (wanted[0]) grads[0] = ops::scale(in[1], G);
        if (wanted[1]) grads[1] = ops::scale(in[0], G);
        return grads;
      });
}

Tensor scale_autograd(const Tensor& u, const Tensor& s) {
  return differentiable(
      "scale", {u, s}, [](const variable_list& in) { return ops::scale(in[0], in[1]); },
      [](const Tensor& G, const variable_list& in, const Tensor&, const Wanted& wanted) {
        variable_list grads(2);
        if (wanted[0]) grads[0] = ops::scale(G, in[1]);
        if (wanted[1]) grads[1] = ops::dot(G, in[0]);
        return grads;
      });
}

// A batch of sums is small.
template <Tensor (*op)(const Tensor&, const Tensor&)>
Tensor batched(const Tensor& u, const Tensor& v) {
  return one_by_one("dot", {}, {u, v}, [](const variable_list& in) { return variable_list{op(in[0], in[1])}; })[0];
}

const Op<decltype(ops::dot)> dot_op{{
    .schema = "dot(Tensor u, Tensor v) -> Tensor",
    .forward = dot_forward,
    .autograd = dot_autograd,
    .batched = batched<ops::dot>,
}};
const Op<decltype(ops::scale)> scale_op{{
    .schema = "scale(Tensor u, Tensor s) -> Tensor",
    .forward = scale_forward,
    .autograd = scale_autograd,
    .batched = batched<ops::scale>,
}};

}  // namespace

Tensor ops::dot(const Tensor& u, const Tensor& v) {
  return dot_op(u, v);
}

Tensor ops::scale(const Tensor& u, const Tensor& s) {
  return scale_op(u, s);
}

}  // namespace gossamer
