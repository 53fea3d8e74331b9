// SPDX-License-Identifier: BSD-3-Clause
// Ops: `factor_inverse`, Z = A⁻¹ on A's pattern, or A⁻ᵀ if t, from a factor of A; and `inverse_tangent`, its derivative
// in a direction M: X = -(B N B) on the pattern, with B = A⁻¹, or A⁻ᵀ if t, and N = M, or Mᵀ if m.
//
//   Z:  Z' = X(A'), with m = t                  dA = X(G) with B = A⁻ᵀ, and m = t
//   X:  X' = X(M') + B A' B N B + B N B A' B    dM = X(G), with B turned round unless m
//       (A' turned as B is)                     dA = C h C n C + C n C h C on the pattern, with C = A⁻ᵀ and
//                                                    h = G, n = Nᵀ, or h = Gᵀ, n = N if t
//
// From the blocks of a Cholesky factor both cost a few factorisations (blocks.h). Where there are none (LU, a device),
// and for what follows the derivative of X, they are n solves or a few times that, 64 columns at once.
#include <ATen/ATen.h>
#include <gossamer/linalg.h>
#include <gossamer/products.h>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/op.h"
#include "solve/inverse/blocks.h"
#include "solve/inverse/unit_columns.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

constexpr const char* inverse_name = "factor_inverse";
constexpr const char* tangent_name = "inverse_tangent";

// What the formulas above are made of: the matrix with its factor, as operators on columns.
struct Solved {
  Tensor factor, values;
  std::vector<Tensor> pattern;
  std::vector<SymInt> shape;

  Tensor solve(const Tensor& b, bool t) const { return ops::factor_solve(factor, pattern, values, b, shape, t); }
  Tensor times(const Tensor& M, const Tensor& X, bool t) const { return ops::spmm(pattern, M, X, shape, t); }
  template <class Column>
  Tensor by_columns(const Column& column) const {
    return on_pattern_by_columns(pattern, values, shape, column);
  }
  // B M1 B M2 B + B M2 B M1 B on the pattern, with B = A⁻¹ or A⁻ᵀ, and M1, M2 turned if they say so.
  Tensor second(bool t, const Tensor& M1, bool t1, const Tensor& M2, bool t2) const {
    return by_columns([&](const Tensor& E) {
      const Tensor B = solve(E, t);
      const Tensor first = times(M1, solve(times(M2, B, t2), t), t1), other = times(M2, solve(times(M1, B, t1), t), t2);
      return solve(first.add(other), t);
    });
  }
};

Tensor inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool t) {
  check_factor(inverse_name, factor, pattern, values, shape);
  if (const auto factors = factors_with_blocks(factor, pattern, values, shape); !factors.empty())
    return inverse_by_blocks(factors, pattern, values);
  const Solved A{factor, values, pattern.vec(), shape.vec()};
  return A.by_columns([&](const Tensor& E) { return A.solve(E, t); });
}

Tensor tangent(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& M, SymIntArrayRef shape,
               bool t, bool m) {
  check_factor(tangent_name, factor, pattern, values, shape);
  check_dense(tangent_name, "M", M, unpack(tangent_name, pattern, shape, /*t=*/false), values.sym_size(0), "entries");
  check_same_dtype(tangent_name, "M", M, "values", values);
  TORCH_CHECK_VALUE(M.sym_sizes() == values.sym_sizes(), tangent_name, ": M has shape ", shape_text(M),
                    " but values have ", shape_text(values));
  if (const auto factors = factors_with_blocks(factor, pattern, values, shape); !factors.empty())
    return tangent_by_blocks(factors, pattern, shape, M, m);
  const Solved A{factor, values, pattern.vec(), shape.vec()};
  return A.by_columns([&](const Tensor& E) { return A.solve(A.times(M, A.solve(E, t), m), t); }).neg();
}

Tensor autograd_inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool t) {
  const auto P = pattern.vec();
  const auto S = shape.vec();
  return differentiable(
      inverse_name, {values, factor},
      [&](const variable_list& in) { return ops::factor_inverse(in[1], P, in[0], S, t); },
      [=](const Tensor& G, const variable_list& in, const Tensor&, const Wanted&) {
        return variable_list{ops::inverse_tangent(in[1], P, in[0], G, S, /*t=*/true, t), Tensor()};
      },
      [=](const variable_list& in, const variable_list& tangents, const Tensor&) {
        return ops::inverse_tangent(in[1], P, in[0], tangents[0], S, t, t);
      },
      /*keep_output=*/false);
}

Tensor autograd_tangent(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& M,
                        SymIntArrayRef shape, bool t, bool m) {
  const auto P = pattern.vec();
  const auto S = shape.vec();
  return differentiable(
      tangent_name, {values, M, factor},
      [&](const variable_list& in) { return ops::inverse_tangent(in[2], P, in[0], in[1], S, t, m); },
      [=](const Tensor& G, const variable_list& in, const Tensor&, const Wanted& wanted) {
        variable_list grads(3);
        const Solved A{in[2], in[0], P, S};
        if (wanted[0]) grads[0] = A.second(/*t=*/true, G, t, in[1], t ? m : !m);
        if (wanted[1]) grads[1] = ops::inverse_tangent(in[2], P, in[0], G, S, m ? t : !t, m);
        return grads;
      },
      [=](const variable_list& in, const variable_list& tangents, const Tensor&) {
        const Solved A{in[2], in[0], P, S};
        Tensor sum;
        if (tangents[0].defined()) sum = A.second(t, tangents[0], t, in[1], m);
        if (!tangents[1].defined()) return sum;
        const Tensor linear = ops::inverse_tangent(in[2], P, in[0], tangents[1], S, t, m);
        return sum.defined() ? sum.add(linear) : linear;
      },
      /*keep_output=*/false);
}

// Batched values are more heads, with a factor each.
Tensor batched_inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool t) {
  return more_heads(inverse_name, pattern, values, factor, /*heads_at=*/1,
                    [&](const Tensor& v, const Tensor& f) { return ops::factor_inverse(f, pattern, v, shape, t); });
}

// So are batched directions, and the heads of one matrix share its factor.
Tensor batched_tangent(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& M,
                       SymIntArrayRef shape, bool t, bool m) {
  const Batch batch(tangent_name, pattern, {values, M, factor});
  const bool heads = values.dim() == 2;
  Tensor v = batch.at(values, 1), d = batch.at(M, 1), f = batch.at(factor, 0);
  if (heads) v = v.flatten(1), d = d.flatten(1), f = f.flatten();
  const Tensor X = ops::inverse_tangent(f, pattern, v, d, shape, t, m);
  return batch.wrap(heads ? unfold_dim(X, 1, {batch.size(), values.sym_size(1)}) : X, 1);
}

const Op<decltype(ops::factor_inverse)> inverse_op{{
    .schema = "factor_inverse(Tensor factor, Tensor[] pattern, Tensor values, SymInt[] shape, bool t=False) -> Tensor",
    .forward = inverse,
    .autograd = autograd_inverse,
    .batched = batched_inverse,
    .meta = false,
}};
const Op<decltype(ops::inverse_tangent)> tangent_op{{
    .schema = "inverse_tangent(Tensor factor, Tensor[] pattern, Tensor values, Tensor M, SymInt[] shape, bool t=False, "
              "bool m=False) -> Tensor",
    .forward = tangent,
    .autograd = autograd_tangent,
    .batched = batched_tangent,
    .meta = false,
}};

}  // namespace

Tensor ops::factor_inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape,
                           bool t) {
  return inverse_op(factor, pattern, values, shape, t);
}

Tensor ops::inverse_tangent(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& M,
                            SymIntArrayRef shape, bool t, bool m) {
  return tangent_op(factor, pattern, values, M, shape, t, m);
}

}  // namespace gossamer
