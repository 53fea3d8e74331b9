// SPDX-License-Identifier: BSD-3-Clause
// A - λM as the derivatives are written in it: public ops on one pattern. Without m, M is the identity.
#pragma once
#include <ATen/ATen.h>
#include <gossamer/products.h>
#include <gossamer/spectral.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/csr.h"

namespace gossamer {

struct Pencil {
  Tensor transform;
  std::vector<Tensor> pattern;
  std::vector<SymInt> shape;
  Tensor a, m;

  ops::OptionalTensor mass() const { return m.defined() ? ops::OptionalTensor(m) : std::nullopt; }
  Tensor times(const Tensor& values, const Tensor& X) const {
    return ops::spmm(pattern, values, X, shape, /*t=*/false);
  }
  Tensor A(const Tensor& X) const { return times(a, X); }
  Tensor M(const Tensor& X) const { return m.defined() ? times(m, X) : X; }
  Tensor on_pattern(const Tensor& U, const Tensor& V) const { return ops::sddmm(pattern, U, V, shape); }  // U Vᵀ
  Tensor solve(const Tensor& X, const Tensor& Theta, const Tensor& B) const {
    return ops::deflated_solve(transform, pattern, a, mass(), X, Theta, B, shape);
  }
};

// Xᵀ Y (k, k), as the values of a matrix without zeros: added up in one order, which torch's own product is not, for
// that depends on the number of threads.
inline Tensor inner_products(const Tensor& X, const Tensor& Y) {
  const int64_t k = X.size(1);
  const auto integers = at::TensorOptions().dtype(at::kInt).device(X.device());
  const std::vector<Tensor> full = {at::arange(0, k * k + 1, std::max<int64_t>(k, 1), integers),
                                    at::arange(k, integers).repeat({k})};
  const std::array<SymInt, 2> shape = {k, k};
  return ops::sddmm(full, X.t(), Y.t(), shape).view({k, k});
}

inline Tensor sum_of(const Tensor& a, const Tensor& b) {  // where an undefined one is 0
  return !a.defined() ? b : !b.defined() ? a : a.add(b);
}

}  // namespace gossamer
