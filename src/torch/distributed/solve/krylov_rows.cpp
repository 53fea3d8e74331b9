// SPDX-License-Identifier: BSD-3-Clause
// The C++ front end of iterative solves with a matrix whose rows are on many processes: operators of own rows, whose
// dots are over all of them.
#include <ATen/ATen.h>
#include <gossamer/distributed_solve.h>

#include <algorithm>

#include "core/csr.h"
#include "distributed/exchange.h"

namespace gossamer {

SparseMatrix distributed::own_block(const DistributedMatrix& A) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::equal(A.offsets(), A.column_offsets()),
                              "own_block: rows and columns of this DistributedMatrix are owned by different ranks");
  const Pattern P = A.pattern();
  const int64_t n = A.local_shape()[0];
  const Tensor kept = P.indices().lt(n).nonzero().squeeze(1);
  return from_coo(P.row_indices().index_select(0, kept), P.indices().to(at::kLong).index_select(0, kept),
                  A.values().index_select(0, kept), {n, n});
}

namespace linalg {
namespace {

void check(const char* op, const DistributedMatrix& A, const char* name, const Tensor& t, const Tensor& b) {
  const int64_t rows = A.local_shape()[0];
  TORCH_CHECK_VALUE((t.dim() == 1 || t.dim() == 2) && t.size(0) == rows && t.sizes().slice(1) == b.sizes().slice(1) &&
                        t.scalar_type() == A.dtype(),
                    op, ": ", name, " must be (", rows, ",) or (", rows, ", k), this rank's rows, of ", A.dtype(),
                    ", not ", shape_text(t), " of ", t.scalar_type());
}

using Solve = KrylovResult (*)(const LinearOperator&, const Tensor&, const KrylovOptions&);

KrylovResult solve(const char* method, Solve by_operator, const DistributedMatrix& A, const Tensor& b,
                   KrylovOptions options) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::equal(A.offsets(), A.column_offsets()), method,
                              ": a DistributedMatrix must be square, its rows and columns owned alike");
  const distributed::Group group(A.group());
  group.check_on_all(std::string(method) + ": b " + distributed::row_text(b), [&] {
    check(method, A, "b", b, b);
    if (options.x0) check(method, A, "x0", *options.x0, b);
  });
  options.group = A.group();
  if (!options.maxiter) options.maxiter = 10 * std::max<int64_t>(A.shape()[0], 1);
  const auto product = [A](bool t) {
    return [A, t](const Tensor& x, const std::vector<Tensor>& v) { return spmm(A.with_values(v[0]), x, t); };
  };
  return by_operator(LinearOperator(A.local_shape(), product(false), {A.values()}, product(true)), b, options);
}

}  // namespace

KrylovResult cg(const DistributedMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("cg", cg, A, b, options);
}
KrylovResult minres(const DistributedMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("minres", minres, A, b, options);
}
KrylovResult gmres(const DistributedMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("gmres", gmres, A, b, options);
}
KrylovResult bicgstab(const DistributedMatrix& A, const Tensor& b, const KrylovOptions& options) {
  return solve("bicgstab", bicgstab, A, b, options);
}

}  // namespace linalg
}  // namespace gossamer
