// SPDX-License-Identifier: BSD-3-Clause
// A few eigenvalues of a large symmetric matrix, A x = λ M x, and singular values; differentiable in A and M to any
// order.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include <gossamer/convergence.h>
#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {

using OptionalTensor = std::optional<Tensor>;

// (v + vᵀ) / 2 of values on a symmetric pattern, which must be symmetric up to rounding; `name` is that of the matrix
// in messages.
Tensor symmetric_part(TensorList pattern, const Tensor& values, SymIntArrayRef shape, c10::string_view name);

// What Lanczos multiplies with, as a handle: (A - σM)⁻¹ M or, without sigma, M⁻¹ A; nothing is factored if `dense`, for
// small matrices. a and m: values on one pattern, float64; no m: the identity. analysis: of the pattern.
Tensor spectral_transform(const OptionalTensor& analysis, TensorList pattern, const Tensor& a, const OptionalTensor& m,
                          SymIntArrayRef shape, std::optional<double> sigma, bool dense);

// {Θ (k, k), X (n, k), labels (k)} with A X = M X Θ, Xᵀ M X = 1: λ ascending on the diagonal of Θ. Equal values have
// one label; Θ may leave the diagonal between them when A changes, so that nothing depends on the basis of their space.
// tolerance: that of same_for_every_basis.
std::tuple<Tensor, Tensor, Tensor> eigenpairs(const Tensor& transform, TensorList pattern, const Tensor& a,
                                              const OptionalTensor& m, SymIntArrayRef shape, int64_t k,
                                              c10::string_view which, int64_t ncv, int64_t maxiter, double tol,
                                              const OptionalTensor& v0, double tolerance);

// W (n, k) with A W - M W Θ + M X C = B and Xᵀ M W = 0, for X and Θ of eigenpairs; C is whatever it takes.
Tensor deflated_solve(const Tensor& transform, TensorList pattern, const Tensor& a, const OptionalTensor& m,
                      const Tensor& X, const Tensor& Theta, const Tensor& B, SymIntArrayRef shape);

// C (k, k) with C Θ - Θ C = N between values of different labels, 0 between equal ones.
Tensor cluster_quotient(const Tensor& Theta, const Tensor& N, const Tensor& labels);

// The diagonal of Θ, as users get it. Gradients are checked up to a relative tolerance on the way back and, if they
// pass, are passed on: those of equal values must be the same (same_for_equal_values), and those of vectors must not
// depend on the basis of the space of equal values (same_for_every_basis).
Tensor cluster_values(const Tensor& Theta, const Tensor& labels, double tolerance);
Tensor same_for_equal_values(const Tensor& labels, const Tensor& g, double tolerance);
Tensor same_for_every_basis(const Tensor& labels, const Tensor& X, const Tensor& G, double tolerance);

// S itself, if all of it is above rounding · largest: else svds throws.
Tensor above_rounding(const Tensor& S, const Tensor& largest, double rounding);

// All of it: linalg::eigsh on matrices that share a pattern, which with sigma and without m has the whole diagonal.
std::tuple<Tensor, Tensor> eigsh(TensorList pattern, const Tensor& a, const OptionalTensor& m, SymIntArrayRef shape,
                                 const OptionalTensor& analysis, int64_t k, std::optional<double> sigma,
                                 c10::string_view which, const OptionalTensor& v0, std::optional<int64_t> ncv,
                                 std::optional<int64_t> maxiter, double tol);

}  // namespace ops

namespace linalg {

// As in SciPy. which: "LM", "SM", "LA", "SA", "BE": the largest or smallest magnitude, the largest or smallest, both
// ends. With sigma it is said of 1 / (λ - sigma), so that "LM" are the values nearest to sigma.
struct EigshOptions {
  std::optional<SparseMatrix> M = {};  // symmetric positive definite; none: the identity
  std::optional<double> sigma = {};
  std::string which = "LM";
  std::optional<Tensor> v0 = {};        // the vector to start from, (n,)
  std::optional<int64_t> ncv = {};      // vectors that Lanczos keeps; max(2k + 1, 20)
  std::optional<int64_t> maxiter = {};  // restarts; 1000
  double tol = 0;                       // of the residual, relative to the value; 0: as exact as can be
};

// {values (k,), vectors (n, k)}: k solutions of A x = λ M x, ascending, with xᵀ M x = 1. A must be symmetric. Throws
// ConvergenceError. Gradients: docs/spectral.md.
std::tuple<Tensor, Tensor> eigsh(const SparseMatrix& A, int64_t k = 6, const EigshOptions& options = {});

// {U (m, k), S (k,), Vh (k, n)}: the k largest (which = "LM") or smallest ("SM") singular values, in the order of
// eigsh: ascending. They must be positive.
std::tuple<Tensor, Tensor, Tensor> svds(const SparseMatrix& A, int64_t k = 6, const std::string& which = "LM",
                                        std::optional<int64_t> maxiter = {}, double tol = 0);

}  // namespace linalg
}  // namespace gossamer
