// SPDX-License-Identifier: BSD-3-Clause
// Lanczos with thick restarts: a few θ and x with T x = θ x, for a SpectralTransform T. Orthogonalisation is full, in
// the inner product xᵀ M y; rows are vectors; the same bits for every number of threads.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "spectral/transform.h"

namespace gossamer {

// Which θ are wanted: those of the largest rank.
enum class Which { largest_magnitude, smallest_magnitude, largest, smallest, both_ends };
Which which_named(c10::string_view name);  // "LM", "SM", "LA", "SA", "BE"
double rank(Which which, double theta);

struct Search {
  int64_t k;
  Which which;
  int64_t ncv;      // vectors kept at once, k < ncv <= n
  int64_t maxiter;  // restarts
  double tol;       // of the residual, relative to θ; 0: rounding errors
  Tensor start;     // (1, n)
};

struct Pairs {
  std::vector<double> theta;
  Tensor X, MX;  // (k, n): Xᵀ M X = 1; MX is X itself if there is no M
};

// The k pairs of the largest rank, equal θ as often as they occur. A Krylov space holds one vector of each eigenspace,
// so when k pairs are found, the space beside them is searched from a random vector for better ones.
Pairs lanczos(const SpectralTransform& T, const Search& search);

}  // namespace gossamer
