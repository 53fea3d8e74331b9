// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factor of a sparse symmetric positive definite matrix as a sparse matrix, differentiable to any order.
#pragma once
#include <gossamer/sparse_matrix.h>

namespace gossamer {
namespace ops {

// {plan, indptr, indices, perm, at} of the factor of matrices on a symmetric pattern: a handle for the ops below, the
// pattern of L by rows, the rows of A in the order of elimination, and for each entry of A which entry of L it is, or
// its mirror image.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> cholesky_pattern(const Tensor& analysis, TensorList pattern,
                                                                    SymIntArrayRef shape);

// The values of L with L Lᵀ = A[perm][:, perm]. factor: {indptr, indices} of L; at: as above.
Tensor cholesky(const Tensor& plan, TensorList factor, const Tensor& values, const Tensor& at);

// x with L Xᵀ + X Lᵀ = N on the pattern of L, for lower triangular L and X on it and the lower triangle N of a
// symmetric matrix; and the transpose of that linear map N → x: y for which Σ y N = Σ G x.
Tensor cholesky_tangent(const Tensor& plan, TensorList factor, const Tensor& l, const Tensor& N);
Tensor cholesky_adjoint(const Tensor& plan, TensorList factor, const Tensor& l, const Tensor& G);

}  // namespace ops

namespace linalg {

// L, lower triangular on its own pattern, which is kept with that of A, and the order of the rows: L Lᵀ is
// A[perm][:, perm]. A must be symmetric and positive definite, or ValueError names the row. See docs/linalg.md.
struct Cholesky {
  SparseMatrix L;
  Tensor perm;
};
Cholesky cholesky(const SparseMatrix& A);

}  // namespace linalg
}  // namespace gossamer
