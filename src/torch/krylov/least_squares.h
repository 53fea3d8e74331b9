// SPDX-License-Identifier: BSD-3-Clause
// The derivative of a least-squares solution x = A⁺ b, where A⁺ = (AᵀA + damp²)⁻¹ Aᵀ; without damp of full rank.
//
//   z = A⁺ᵀ g,   r = b - A x,   p = g - Aᵀ z,        db = z,   dA on the pattern (swapped if t):
//
//   damped           r pᵀ / damp² - z xᵀ
//   tall             r yᵀ - z xᵀ        y = A⁺ z
//   wide             q pᵀ - z xᵀ        q = A⁺ᵀ x
//
// A⁺ᵀ = (Aᵀ)⁺, so each of these is a least-squares solution again, and derivatives of any order follow.
#pragma once
#include <gossamer/products.h>
#include <functional>
#include <utility>
#include <vector>

#include "core/csr.h"
#include "core/differentiable.h"

namespace gossamer {

struct LeastSquares {
  std::vector<Tensor> pattern;
  std::vector<SymInt> shape;
  double damp;
  bool t;
  // A⁺ rhs, or A⁺ᵀ rhs if `other`, through the dispatcher.
  std::function<Tensor(const Tensor& values, const Tensor& rhs, bool other)> solve;

  bool tall() const { return t ? shape[1] >= shape[0] : shape[0] >= shape[1]; }
  Tensor product(const Tensor& values, const Tensor& x, bool other) const {
    return ops::spmm(pattern, values, x, shape, t != other);
  }
  Tensor outer(const Tensor& u, const Tensor& w) const {
    return t ? ops::sddmm(pattern, w, u, shape) : ops::sddmm(pattern, u, w, shape);
  }

  variable_list vjp(const Tensor& g, const Tensor& values, const Tensor& b, const Tensor& x,
                    const Wanted& wanted) const {
    const Tensor z = solve(values, g, true);
    variable_list grads{Tensor(), wanted[1] ? z : Tensor()};
    if (!wanted[0]) return grads;
    Tensor first;
    if (damp != 0 || tall()) {
      const Tensor r = b - product(values, x, false);
      first = damp != 0 ? outer(r, (g - product(values, z, true)) / (damp * damp)) : outer(r, solve(values, z, false));
    } else {
      first = outer(solve(values, x, true), g - product(values, z, true));
    }
    grads[0] = first - outer(z, x);
    return grads;
  }

  // A⁺(b' - A' x), and what A'ᵀ adds: (AᵀA + damp²)⁻¹ A'ᵀ r or, if wide, (1 - A⁺A) A'ᵀ q.
  Tensor jvp(const Tensor& values_tangent, const Tensor& b_tangent, const Tensor& values, const Tensor& b,
             const Tensor& x) const {
    if (!values_tangent.defined()) return solve(values, b_tangent, false);
    const Tensor Ax = product(values_tangent, x, false);
    const Tensor first = solve(values, b_tangent.defined() ? b_tangent - Ax : -Ax, false);
    if (damp == 0 && !tall()) {
      const Tensor w = product(values_tangent, solve(values, x, true), true);
      return first + w - solve(values, product(values, w, false), false);
    }
    const Tensor w = product(values_tangent, b - product(values, x, false), true);
    const Tensor z = solve(values, w, true);
    return first + (damp != 0 ? (w - product(values, z, true)) / (damp * damp) : solve(values, z, false));
  }
};

}  // namespace gossamer
