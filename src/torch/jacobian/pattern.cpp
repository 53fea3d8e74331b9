// SPDX-License-Identifier: BSD-3-Clause
// Front end: jacobian_pattern. The loop around the probes; kernels/probe.h says what they tell.
#include <gossamer/jacobian.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "jacobian/linearised.h"

namespace gossamer {
namespace {

struct Places {
  Tensor rows, cols;
  int64_t m;
};

void check_finite(const Linearised& near, const Tensor& rows) {
  TORCH_CHECK_VALUE(rows.numel() == 0, near.op(), ": the derivatives of f in row ", rows[0].item<int64_t>(),
                    " are not finite at x");
}

Tensor unit(int64_t n, const Tensor& places, at::ScalarType dtype) {
  return at::zeros({places.size(0), n}, dtype).scatter_(1, places.cpu().unsqueeze(1), 1);
}

// Of dense rows of the Jacobian.
void add_nonzeros(const Linearised& near, const Tensor& J, const Tensor& rows, std::vector<Tensor>& i,
                  std::vector<Tensor>& j) {
  check_finite(near, rows.index_select(0, J.isfinite().all(1).logical_not().nonzero().flatten()));
  const Tensor places = J.nonzero();
  i.push_back(rows.index_select(0, places.select(1, 0)));
  j.push_back(places.select(1, 1));
}

// All entries at one point.
Places entries(const Linearised& near, int64_t seed) {
  const int64_t n = near.cols();
  const auto dtype = near.x().scalar_type();
  const auto wide = at::TensorOptions().dtype(at::kLong).device(near.x().device());
  std::vector<Tensor> i = {at::empty({0}, wide)}, j = {at::empty({0}, wide)};
  Tensor open;
  int64_t m = 0;
  for (int64_t buckets = 10; !open.defined() || open.size(0) > 0; buckets *= 2, ++seed) {
    const Tensor v = ops::probe_direction(n, seed, dtype).unsqueeze(0);
    const Tensor product = near.push(1, [&](int64_t, int64_t) { return v; })[0];
    m = product.size(0);
    if (!open.defined()) open = at::arange(m, wide);
    if (n == 0) break;
    const int64_t probes = ops::probe_count(n, buckets, dtype), left = open.size(0);
    if (n <= std::min(probes, left)) {
      const Tensor J = near.push(n, [&](int64_t a, int64_t b) { return unit(n, at::arange(a, b), dtype); });
      add_nonzeros(near, J.index_select(1, open).t(), open, i, j);
      break;
    }
    if (left <= probes) {
      const Tensor J =
          near.pull(left, [&](int64_t a, int64_t b) { return unit(m, open.slice(0, a, b), product.scalar_type()); });
      add_nonzeros(near, J, open, i, j);
      break;
    }
    const Tensor Y =
        near.push(probes, [&](int64_t a, int64_t b) { return ops::probe_seeds(n, buckets, seed, a, b, dtype); });
    const auto [rows, cols, status] = ops::probe_rows(Y, product, open, n, buckets, seed);
    check_finite(near, open.index_select(0, status.eq(2).nonzero().flatten()));
    i.push_back(rows), j.push_back(cols);
    open = open.index_select(0, status.eq(0).nonzero().flatten());
  }
  return {at::cat(i), at::cat(j), m};
}

Pattern assemble(Tensor rows, Tensor cols, Shape shape, bool symmetric) {
  if (symmetric) std::tie(rows, cols) = std::pair(at::cat({rows, cols}), at::cat({cols, rows}));
  const auto [indptr, indices, slot] = ops::coo(rows, cols, shape);
  return Pattern(indptr, indices, shape, /*check=*/false);
}

}  // namespace

Pattern find_pattern(const Linearised& near, const JacobianPatternOptions& options, bool symmetric) {
  const c10::AutoGradMode off(false);
  TORCH_CHECK_VALUE(options.points >= 1, near.op(), ": points must be at least 1, not ", options.points);
  const Places found = entries(near, options.seed);
  Pattern pattern = assemble(found.rows, found.cols, {found.m, near.cols()}, symmetric);
  for (int64_t k = 1; k < options.points; ++k) {
    const Linearised there = near.at(ops::probe_point(near.x(), options.seed, k));
    const CheckedValues J = jacobian_values(there, pattern, "forward", /*check=*/true, options.seed);
    // Where f has no finite derivatives nothing is learned; x is what was asked for.
    if (J.wrong < 0 || !J.finite) continue;
    const Places more = entries(there, options.seed);
    pattern = assemble(at::cat({pattern.row_indices(), more.rows}),
                       at::cat({pattern.indices().to(at::kLong), more.cols}), pattern.shape(), symmetric);
  }
  return pattern;
}

Pattern jacobian_pattern(const VectorFunction& f, const Tensor& x, const JacobianPatternOptions& options) {
  return find_pattern(Linearised("jacobian_pattern", f, x.detach()), options, /*symmetric=*/false);
}

}  // namespace gossamer
