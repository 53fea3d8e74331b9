// SPDX-License-Identifier: BSD-3-Clause
// The degrees of nodes, as GCN's normalisation D^-1/2 A D^-1/2 takes them.
#pragma once
#include <ATen/ATen.h>

#include <gossamer/reduce.h>

namespace gossamer {

// D^-1/2. A node whose weights do not add up to a positive number has none; it counts as 0, with gradient 0.
inline at::Tensor inverse_root(const at::Tensor& degree) {
  const at::Tensor positive = degree.gt(0);
  return degree.where(positive, 1).pow(-0.5).where(positive, 0);
}

// D^-1/2 A D^-1/2 on the entries of a pattern. to_columns: from a number for each row to one for each column. In one
// process they are the same; where processes share the graph, those of others are fetched.
template <class F>
at::Tensor symmetric_norm(TensorList pattern, const at::Tensor& weights, SymIntArrayRef shape, const F& to_columns) {
  const at::Tensor d = inverse_root(ops::row_sum(pattern, weights, shape));
  const at::Tensor by_rows = ops::scale_axis(pattern, weights, d, shape, /*cols=*/false);
  return ops::scale_axis(pattern, by_rows, to_columns(d), shape, /*cols=*/true);
}

}  // namespace gossamer
