// SPDX-License-Identifier: BSD-3-Clause
// The derivative of every linear solve, written once. For x with A x = b, or Aᵀ x = b if t, however it was computed:
//
//   db = solve(A, g, !t)        dA = -(db xᵀ) on A's pattern, swapped if t        x' = solve(A, b' - A' x, t)
//
// (Nonsymmetric A: db solves with the other transpose.) A solver that reads only a part of A, such as a triangle, gives
// a mask of it; the gradient is 0 elsewhere.
#pragma once
#include <gossamer/products.h>
#include <functional>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"

namespace gossamer {

struct LinearSolve {
  const char* op;
  std::vector<Tensor> pattern;
  std::vector<SymInt> shape;
  bool t;

  // The op itself, called through the dispatcher. `factor` is what a solver made of A beforehand, undefined if it makes
  // nothing.
  std::function<Tensor(const Tensor& values, const Tensor& b, const Tensor& factor, bool t)> solve;
  // Values on the part of A that is read, 0 elsewhere; empty if all of A is.
  std::function<Tensor(const Tensor& values)> mask = {};

  Tensor masked(const Tensor& values) const { return mask ? mask(values) : values; }

  // -(db xᵀ) on the pattern.
  Tensor values_gradient(const Tensor& values, const Tensor& db, const Tensor& x) const {
    const Tensor u = with_columns(values, db.neg()), w = with_columns(values, x);
    return masked(t ? ops::sddmm(pattern, w, u, shape) : ops::sddmm(pattern, u, w, shape));
  }

  // b' - A' x, where a tangent that is undefined is 0.
  Tensor right_side_tangent(const Tensor& values_tangent, const Tensor& b_tangent, const Tensor& x) const {
    if (!values_tangent.defined()) return b_tangent;
    const Tensor product = ops::spmm(pattern, masked(values_tangent), x, shape, t);
    return b_tangent.defined() ? b_tangent.sub(product) : product.neg();
  }
};

inline Tensor differentiable_solve(LinearSolve A, const Tensor& values, const Tensor& b, const Tensor& factor = {}) {
  return differentiable(
      A.op, {values, b, factor}, [&A](const variable_list& in) { return A.solve(in[0], in[1], in[2], A.t); },
      [A](const Tensor& G, const variable_list& in, const Tensor& x, const Wanted& wanted) {
        variable_list grads(3);
        const Tensor db = A.solve(in[0], G, in[2], !A.t);
        if (wanted[0]) grads[0] = A.values_gradient(in[0], db, x);
        if (wanted[1]) grads[1] = db;
        return grads;
      },
      [&A](const variable_list& in, const variable_list& tangents, const Tensor& x) {
        return A.solve(in[0], A.right_side_tangent(tangents[0], tangents[1], x), in[2], A.t);
      });
}

// vmap: batched values are more heads, with a factor each; a batch of b alone is more columns.
inline Tensor batched_solve(const LinearSolve& A, const Tensor& values, const Tensor& b, const Tensor& factor = {}) {
  return heads_or_columns(
      A.op, A.pattern, values, b, factor,
      [&A](const Tensor& v, const Tensor& rhs, const Tensor& f) { return A.solve(v, rhs, f, A.t); });
}

}  // namespace gossamer
