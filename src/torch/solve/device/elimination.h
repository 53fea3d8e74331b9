// SPDX-License-Identifier: BSD-3-Clause
// Class: Elimination, the frozen part of a factorisation on a device: in which order rows and columns are eliminated,
// so that the pivots stand on the diagonal, and the pattern F of all that fills in. It is found on the host, once, and
// its tensors live on the device. With the rows and columns of A in this order,
//
//   A = L D U,   or   A = L D Lᵀ if it is symmetric        L and U with unit diagonals, on F
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <vector>

#include "solve/engines/engine.h"

namespace gossamer {

using at::Tensor;

class Elimination {
 public:
  // A's values are not read. perm: entry q of A, by columns, is entry perm[q] of the values that `factors` is given.
  Elimination(const SquareColumns& A, const std::vector<int64_t>& perm, const PivotOrder& order, bool symmetric,
              at::Device device);

  bool symmetric() const { return symmetric_; }
  int parity() const { return parity_; }                        // of both orders
  Tensor factors(const Tensor& values) const;                   // values (nnz, H) → L, D and U on F, (nnz of F, H)
  Tensor pivots(const Tensor& factors) const;                   // D, (n, H)
  Tensor solve(const Tensor& factors, Tensor b, bool t) const;  // x with A x = b, or Aᵀ x = b; (n, H, k)

  // The backward error that these pivots may leave. More than they left for the values they were chosen for means that
  // values have moved away from them.
  static constexpr double small_error = 1e-12, large_error = 1e-3;
  mutable std::atomic<double> tolerance = small_error;

 private:
  Tensor triangle(const Tensor& factors, const Tensor& b, bool upper, bool t) const;

  int64_t n_;
  bool symmetric_;
  int parity_;
  std::vector<Tensor> F_;   // as ops take a pattern, with its transpose
  Tensor diagonal_;         // the place of (i, i) in F
  Tensor entries_, slots_;  // entry entries_[q] of A is entry slots_[q] of F
  // Row i of A is row ranks[i] in the order, and the k-th row in the order is row in_order[k] of A.
  struct Side {
    Tensor ranks, in_order;
  } rows_, columns_;
};

}  // namespace gossamer
