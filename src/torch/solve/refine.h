// SPDX-License-Identifier: BSD-3-Clause
// Iterative refinement: how far a solution is from solving, and what brings it nearer.
//
//   x ← A⁻¹ b        r = b - A x        x ← x + A⁻¹ r        until ‖r‖ / (‖A‖ ‖x‖ + ‖b‖) is small, largest numbers
#pragma once
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "solve/solve.h"

namespace gossamer {

// For each right-hand side; rows are along `dim`.
inline Tensor backward_error(const Tensor& r, const Tensor& x, const Tensor& b, const Tensor& norm, int64_t dim) {
  const auto largest = [dim](const Tensor& t) { return at::linalg_vector_norm(t, INFINITY, dim); };
  const Tensor size = largest(x).mul(norm).add(largest(b));
  return largest(r).div(size.clamp_min(std::numeric_limits<double>::min()));
}

// x = solve(b), refined up to three times until the backward error of all right-hand sides is below the tolerance, with
// product(x) = A x. Throws if they do not solve. On a device, the host looks at one number after each step.
template <class Solve, class Product>
Tensor solve_refined(const char* op, const Solve& solve, const Product& product, const Tensor& b, const Tensor& norm,
                     int64_t dim, double tolerance) {
  Tensor x = solve(b), r;
  const auto error_of_x = [&] {
    r = product(x).neg_().add_(b);
    return backward_error(r, x, b, norm, dim).max().template item<double>();
  };
  double error = error_of_x();
  for (int step = 0; step < 3 && error > tolerance; ++step) {
    x.add_(solve(r));
    error = error_of_x();
  }
  // What is not finite in b is not finite in x, and has no error to be judged by.
  if (std::isnan(error) && !b.isfinite().all().template item<bool>()) return x;
  if (!(error < 1e-8))
    throw_singular(op, "the values were changed after they were factored, or, the backward error being ", error);
  return x;
}

}  // namespace gossamer
