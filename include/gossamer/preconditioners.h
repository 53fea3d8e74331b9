// SPDX-License-Identifier: BSD-3-Clause
// Preconditioners made of a matrix, differentiable in its values: Jacobi, block Jacobi, incomplete factors, multigrid.
//
//   auto A = gossamer::poisson({100, 100}, torch::kFloat64);
//   auto M = gossamer::linalg::amg(A);
//   auto z = M->apply(torch::ones(100 * 100, torch::kFloat64), /*transpose=*/false);    // close to A⁻¹ r
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include <gossamer/preconditioner.h>
#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {

// F with L Lᵀ = A on the pattern of the lower triangle of A (kind 0, F = L; the pattern is that of the triangle), or
// with L U = A on the pattern of A (kind 1, F = L - I + U): see kernels/incomplete.h. `jacobian`: what
// incomplete_jacobian gives for the pattern, for the derivative; {} if none is wanted, or to find it then.
Tensor incomplete_factor(TensorList pattern, const Tensor& values, SymIntArrayRef shape, TensorList jacobian,
                         int64_t kind);
// {indptr, indices, from} of J with J dF = dA, of which entry q is entry from[q] of (F, 1), and the factor of dA in
// each equation, 1 or 1/2.
std::tuple<Tensor, Tensor, Tensor, Tensor> incomplete_jacobian(TensorList pattern, SymIntArrayRef shape, int64_t kind);

}  // namespace ops

namespace linalg {

// A preconditioner that was made of the values of a matrix, and can be made again of other ones.
class MatrixPreconditioner : public Preconditioner {
 public:
  // For a matrix with other values on the same pattern; everything that follows from the pattern is kept.
  virtual void update(const SparseMatrix& A) = 0;
  virtual std::shared_ptr<MatrixPreconditioner> copy() const = 0;
};
using MatrixPreconditionerPtr = std::shared_ptr<MatrixPreconditioner>;

// M = diag(A)⁻¹. A diagonal entry that is missing or zero throws SingularMatrixError.
MatrixPreconditionerPtr jacobi(const SparseMatrix& A);
// M = the inverses of the blocks on the diagonal of A, of `size` rows each (the last one of what is left), or of so
// many rows one after the other.
MatrixPreconditionerPtr block_jacobi(const SparseMatrix& A, int64_t size);
MatrixPreconditionerPtr block_jacobi(const SparseMatrix& A, at::IntArrayRef sizes);

// M = U⁻¹ L⁻¹ with triangles that have no entries but A's.
class IncompleteFactors : public MatrixPreconditioner {
 public:
  virtual SparseMatrix L() const = 0;
  virtual SparseMatrix U() const = 0;
};
using IncompleteFactorsPtr = std::shared_ptr<IncompleteFactors>;

// L Lᵀ = A + shift · diag(A) where the lower triangle of A, which alone is read, has entries; U is Lᵀ. A pivot that is
// not positive throws SingularMatrixError: a larger shift helps.
IncompleteFactorsPtr ichol(const SparseMatrix& A, double shift = 0);
// L U = A where A has entries, L with ones on its diagonal.
IncompleteFactorsPtr ilu(const SparseMatrix& A);

struct AmgOptions {
  double theta = 0.08;          // connections weaker than this are left out of the aggregates; halved on each level
  Tensor near_null_space = {};  // (n, m): vectors that A nearly maps to 0; ones for each of the block_size components
  int64_t block_size = 1;       // rows a node has, such as the displacements of a point
  Tensor omega = {};            // the weight of the prolongation's smoothing, () or one a level, differentiable; 4/3
  int64_t coarse_size = 300;    // rows that are solved directly
};

// A V-cycle of smoothed aggregation with a Gauss–Seidel sweep each way and a direct solve on the last level.
class Amg : public MatrixPreconditioner {
 public:
  using MatrixPreconditioner::update;
  virtual void update(const SparseMatrix& A, const Tensor& omega) = 0;  // with other weights, too
  virtual std::vector<int64_t> sizes() const = 0;                       // the rows of each level
  virtual double operator_complexity() const = 0;                       // entries of all levels over those of A
};
using AmgPtr = std::shared_ptr<Amg>;

AmgPtr amg(const SparseMatrix& A, const AmgOptions& options = {});

}  // namespace linalg
}  // namespace gossamer
