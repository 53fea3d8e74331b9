// SPDX-License-Identifier: BSD-3-Clause
// The C++ front end of the iterative solves.
#include <ATen/ATen.h>
#include <gossamer/krylov.h>
#include <gossamer/products.h>

#include <algorithm>

#include "krylov/drive.h"
#include "krylov/operator_solve.h"

namespace gossamer::linalg {
namespace {

KrylovOptions filled(KrylovOptions o, const Tensor& b, const Shape& shape) {
  if (!o.rtol) o.rtol = b.scalar_type() == at::kDouble ? 1e-8 : 1e-5;
  if (!o.adjoint_rtol) o.adjoint_rtol = o.rtol;
  if (!o.maxiter) o.maxiter = 10 * std::max(shape[0], shape[1]);
  return o;
}

KrylovResult solve(const char* method, const LinearOperator& A, const Tensor& b, const KrylovOptions& options) {
  const auto [x, info] = krylov::operator_solve(method, A, b, filled(options, b, A.shape()));
  return {x, krylov::info_of(info)};
}

// By one op; with a callback or unrolled as an operator whose parameters are the values.
KrylovResult solve(const char* method, const SparseMatrix& A, const Tensor& b, const KrylovOptions& options) {
  if (options.callback || options.unrolled) {
    const SparseMatrix pattern = A.detach();
    const auto product = [pattern](bool t) {
      return
          [pattern, t](const Tensor& x, const std::vector<Tensor>& v) { return spmm(pattern.with_values(v[0]), x, t); };
    };
    return solve(method, LinearOperator(A.shape(), product(false), {A.values()}, product(true)), b, options);
  }
  const auto original = A.original();
  const SparseMatrix& stored = original ? *original : A;
  const KrylovOptions o = filled(options, b, A.shape());
  const auto M = o.M ? std::optional<Tensor>(ops::preconditioner_handle(o.M)) : std::nullopt;
  const auto tensors = stored.pattern().with_runs(stored.pattern().tensors(/*with_transpose=*/true));
  const auto [x, info] =
      ops::krylov_solve(tensors, stored.values(), b, o.x0, M, stored.pattern().sym_shape(), method, *o.rtol, o.atol,
                        *o.maxiter, o.restart, o.damp, o.check, *o.adjoint_rtol, original.has_value(), /*m_t=*/false);
  return {x, krylov::info_of(info)};
}

}  // namespace

KrylovResult cg(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("cg", A, b, options);
}
KrylovResult minres(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("minres", A, b, options);
}
KrylovResult gmres(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("gmres", A, b, options);
}
KrylovResult bicgstab(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("bicgstab", A, b, options);
}
KrylovResult lsmr(const SparseMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("lsmr", A, b, options);
}

KrylovResult cg(const LinearOperator& A, const Tensor& b, const KrylovOptions& options) {
  return solve("cg", A, b, options);
}
KrylovResult minres(const LinearOperator& A, const Tensor& b, const KrylovOptions& options) {
  return solve("minres", A, b, options);
}
KrylovResult gmres(const LinearOperator& A, const Tensor& b, const KrylovOptions& options) {
  return solve("gmres", A, b, options);
}
KrylovResult bicgstab(const LinearOperator& A, const Tensor& b, const KrylovOptions& options) {
  return solve("bicgstab", A, b, options);
}
KrylovResult lsmr(const LinearOperator& A, const Tensor& b, const KrylovOptions& options) {
  return solve("lsmr", A, b, options);
}

}  // namespace gossamer::linalg
