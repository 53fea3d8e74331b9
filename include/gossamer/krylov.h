// SPDX-License-Identifier: BSD-3-Clause
// Iterative solves with sparse matrices and with operators that are functions, differentiable to any order.
//
//   auto A = gossamer::poisson({30, 30}, torch::kFloat64).requires_grad_();
//   auto [x, info] = gossamer::linalg::cg(A, torch::ones(900, torch::kFloat64), {.rtol = 1e-10});
//   x.sum().backward();                    // one more solve, with Aᵀ
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gossamer/convergence.h>
#include <gossamer/linalg.h>
#include <gossamer/linear_operator.h>
#include <gossamer/preconditioner.h>

namespace gossamer {

namespace ops {

// x with A x = b, or Aᵀ x = b if t, by a method of linalg below, and (3, columns of b) of float64: iterations,
// residual, whether it converged. M: a handle of a preconditioner, used transposed if m_t. Derivatives are solved to
// adjoint_rtol and always checked.
std::tuple<Tensor, Tensor> krylov_solve(TensorList pattern, const Tensor& values, const Tensor& b,
                                        const std::optional<Tensor>& x0, const std::optional<Tensor>& M,
                                        SymIntArrayRef shape, c10::string_view method, double rtol, double atol,
                                        int64_t maxiter, int64_t restart, double damp, bool check, double adjoint_rtol,
                                        bool t, bool m_t);

}  // namespace ops

namespace linalg {

// Of each column of b (0-dim for one vector): the iterations it took, ‖b - A x‖ as computed anew from x (for lsmr
// ‖Aᵀ(b - A x) - damp² x‖), and whether that is at most max(rtol ‖b‖, atol) (lsmr: rtol ‖Aᵀ b‖).
struct KrylovInfo {
  Tensor iterations, residual, converged;
};

struct KrylovResult {
  Tensor x;
  KrylovInfo info;
};

struct KrylovOptions {
  std::optional<Tensor> x0 = {};    // where to begin; it has no gradient
  std::optional<double> rtol = {};  // 1e-8 in float64, 1e-5 in float32
  double atol = 0;
  std::optional<int64_t> maxiter = {};                   // 10 n
  PreconditionerPtr M = nullptr;                         // see `preconditioner` below
  std::function<void(const KrylovInfo&)> callback = {};  // after every iteration; may throw
  bool check = true;                                     // throw ConvergenceError; else see info.converged
  std::optional<double> adjoint_rtol = {};               // of derivatives, relative to the incoming gradient; rtol
  bool unrolled = false;   // differentiate the iterations themselves, and M; never throws ConvergenceError
  int64_t restart = 30;    // gmres: vectors between restarts
  double damp = 0;         // lsmr
  std::string group = {};  // of an operator whose rows are on the processes of this group: it takes and gives own rows
};

// A: symmetric positive definite (cg), symmetric (minres), any square matrix (gmres, bicgstab), any matrix (lsmr, which
// gives the x of min ‖b - A x‖² + damp² ‖x‖², the smallest if there are several; its M approximates the inverse of
// AᵀA + damp², or of AAᵀ + damp² if A is wide, and is symmetric positive definite).
// b: (n,) or (n, k). Columns are solved together and frozen one by one.
KrylovResult cg(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult minres(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult gmres(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult bicgstab(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult lsmr(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options = {});

// The same for an operator; differentiable in its parameters. (lsmr: differentiable in b and the parameters, too.)
KrylovResult cg(const LinearOperator& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult minres(const LinearOperator& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult gmres(const LinearOperator& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult bicgstab(const LinearOperator& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult lsmr(const LinearOperator& A, const Tensor& b, const KrylovOptions& options = {});

// Preconditioners from what is at hand: z = M r, z = A⁻¹ r by the factors of A, z = f(r, transpose).
PreconditionerPtr preconditioner(const SparseMatrix& M);
PreconditionerPtr preconditioner(const Factor& factor);
PreconditionerPtr preconditioner(int64_t n, std::function<Tensor(const Tensor& r, bool transpose)> f);

}  // namespace linalg
}  // namespace gossamer
