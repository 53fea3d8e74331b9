// SPDX-License-Identifier: BSD-3-Clause
// Least squares with sparse matrices, tall, wide or damped, differentiable in the matrix and in the right-hand side.
#pragma once
#include <string>

#include <gossamer/sparse_matrix.h>

namespace gossamer {
namespace ops {

// A handle of the Cholesky factor of N = Bᵀ B + damp² I, whose values on its pattern are given, for the op below.
// Throws SingularMatrixError if columns of B depend on each other. wide: for the message, B is Aᵀ.
Tensor gram_factor(const Tensor& analysis, const Tensor& gram, bool wide);

// {r, x} with r + B x = b and Bᵀ r - damp² x = c, where B is A, or Aᵀ if t: for c = 0 the least-squares solution x with
// its residual r, for b = 0 and damp = 0 the smallest r with Bᵀ r = c. Vectors, or matrices of as many columns.
std::tuple<Tensor, Tensor> augmented_solve(const Tensor& factor, TensorList pattern, const Tensor& values,
                                           const Tensor& b, const Tensor& c, SymIntArrayRef shape, double damp, bool t);

// linalg::lstsq on tensors. `gram`: the pattern of Aᵀ A, or of A Aᵀ if A is wide, with all of its diagonal, which is at
// the places `diagonal`; `analysis` is of that pattern.
Tensor lstsq(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, double damp,
             TensorList gram, const Tensor& diagonal, const Tensor& analysis);

// linalg::expm_multiply on tensors.
Tensor expm_multiply(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, double t);

}  // namespace ops

namespace linalg {

// The x that makes ‖A x - b‖² + damp² ‖x‖² smallest and, if there are several, the smallest of them. b: (m,) or (m, k).
// method: "cholesky", normal equations with refinement, which throws SingularMatrixError unless A has full rank or
// damp > 0; or "lsmr", which iterates to 1e-12.
Tensor lstsq(const SparseMatrix& A, const Tensor& b, double damp = 0, const std::string& method = "cholesky");

// exp(t A) b for a square A, without the exponential itself. b: (n,) or (n, k).
Tensor expm_multiply(const SparseMatrix& A, const Tensor& b, double t = 1.0);

}  // namespace linalg
}  // namespace gossamer
