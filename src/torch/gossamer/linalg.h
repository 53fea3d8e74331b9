// SPDX-License-Identifier: BSD-3-Clause
// Solves with sparse matrices, differentiable in the matrix and in the right-hand side.
#pragma once
#include <c10/util/Exception.h>

#include "sparse_matrix.h"

namespace gossamer {

// A matrix that cannot be solved with: no diagonal entry, a zero pivot, an empty row. Python sees it as
// gs.SingularMatrixError, a ValueError.
class SingularMatrixError : public c10::ValueError {
  using c10::ValueError::ValueError;
};

namespace linalg {

// x with L x = b, or Lᵀ x = b. Reads one triangle of L only, and not its diagonal if unit_diagonal.
// b: (n,) or (n, k); with H matrices on one pattern (n, H) or (n, H, k).
Tensor solve_triangular(const SparseMatrix& L, const Tensor& b, bool upper = false, bool unit_diagonal = false,
                        bool transpose = false);

}  // namespace linalg
}  // namespace gossamer
