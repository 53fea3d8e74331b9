// SPDX-License-Identifier: BSD-3-Clause
// A matrix on a pattern by its columns, for matrices that are known by what they do to a vector: n of these, without an
// n × n matrix.
#pragma once
#include <ATen/ATen.h>
#include <gossamer/products.h>

#include <algorithm>

#include "core/csr.h"
#include "signals/signals.h"

namespace gossamer {

// Calls visit(E) for blocks E of columns of the identity, shaped as b of factor_solve.
template <class Visit>
void for_unit_columns(const Tensor& values, const c10::SymInt& n, const Visit& visit) {
  constexpr int64_t width = 64;
  const int64_t size = n.guard_int(__FILE__, __LINE__);
  for (int64_t first = 0; first < size; first += width) {
    const int64_t columns = std::min(width, size - first);
    Tensor E = at::zeros({size, columns}, values.options());
    E.diagonal(-first).fill_(1);
    if (values.dim() == 2) E = E.unsqueeze(1).expand_symint({n, values.sym_size(1), columns});
    throw_if_interrupted();
    visit(E);
  }
}

// Entry (i, j) is row i of column(unit vector j), for blocks of 64 at a time.
template <class Column>
Tensor on_pattern_by_columns(TensorList pattern, const Tensor& values, SymIntArrayRef shape, const Column& column) {
  // A derivative comes here unchecked where the op itself was given a meta tensor.
  TORCH_CHECK_VALUE(shape.size() == 2, "an inverse's shape must be (rows, cols), not ", shape.size(), " numbers");
  Tensor sum;
  for_unit_columns(values, shape[0], [&](const Tensor& E) {
    const Tensor part = ops::sddmm(pattern, column(E), E, shape);
    sum = sum.defined() ? sum.add(part) : part;
  });
  return sum.defined() ? sum : at::zeros_like(values);
}

}  // namespace gossamer
