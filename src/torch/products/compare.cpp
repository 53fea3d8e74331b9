// SPDX-License-Identifier: BSD-3-Clause
// Two matrices entry by entry: f on the union of their patterns for every f with f(0, 0) = 0.
#include <gossamer/compare.h>

#include <ATen/ATen.h>

#include <gossamer/elementwise.h>
#include <gossamer/products.h>
#include <gossamer/reduce.h>
#include "core/csr.h"
#include "core/op.h"
#include "products/alike.h"

namespace gossamer {
namespace {

template <class F>
SparseMatrix on_union(const char* op, const SparseMatrix& A, const SparseMatrix& B, const F& f) {
  check_alike(op, A, B);
  A.pattern().check_simple(op), B.pattern().check_simple(op);
  if (A.pattern().equals(B.pattern())) return A.with_values(f(A.values(), B.values()));
  const auto both = A.pattern().merge(B.pattern());
  const int64_t nnz = both.pattern.nnz();
  return SparseMatrix(both.pattern, f(ops::place(A.values(), both.at_A, nnz), ops::place(B.values(), both.at_B, nnz)));
}

}  // namespace

Tensor ops::times_dense(TensorList pattern, const Tensor& values, const Tensor& X, SymIntArrayRef shape) {
  const PatternTensors A = unpack("multiply", pattern, shape, /*t=*/false);
  const SymInt &m = A.rows, &n = A.cols;
  const int64_t dims = X.dim();
  const bool heads = dims == 3 && values.dim() == 2 && X.sym_size(2) == values.sym_size(1);
  const bool whole = (dims == 2 || heads) && X.sym_size(0) == m && X.sym_size(1) == n;
  const bool a_row =
      !whole && ((dims == 1 && X.sym_size(0) == n) || (dims == 2 && X.sym_size(0) == 1 && X.sym_size(1) == n));
  const bool a_column = !whole && dims == 2 && X.sym_size(0) == m && X.sym_size(1) == 1;
  TORCH_CHECK_VALUE(whole || a_row || a_column, "multiply: X has shape ", shape_text(X), " but A is ", m, " x ", n);
  TORCH_CHECK_VALUE(X.device() == A.indptr.device(), "multiply: X is on ", X.device(), " but A is on ",
                    A.indptr.device());
  if (!whole) return scale_axis(pattern, values, X.flatten(), shape, /*cols=*/a_row);
  Tensor at_entries = X.index({row_indices(A.indptr, A.indices), A.indices.to(at::kLong)});
  if (at_entries.dim() < values.dim()) at_entries = at_entries.unsqueeze(1);
  return values * at_entries;
}

static const Composites composites = Composites().def(
    "times_dense(Tensor[] pattern, Tensor values, Tensor X, SymInt[] shape) -> Tensor", ops::times_dense);

SparseMatrix maximum(const SparseMatrix& A, const SparseMatrix& B) {
  return on_union("maximum", A, B, [](const Tensor& a, const Tensor& b) { return at::maximum(a, b); });
}

SparseMatrix minimum(const SparseMatrix& A, const SparseMatrix& B) {
  return on_union("minimum", A, B, [](const Tensor& a, const Tensor& b) { return at::minimum(a, b); });
}

SparseMatrix ne(const SparseMatrix& A, const SparseMatrix& B) {
  return on_union("ne", A, B, [](const Tensor& a, const Tensor& b) { return a.ne(b); });
}

SparseMatrix lt(const SparseMatrix& A, const SparseMatrix& B) {
  return on_union("lt", A, B, [](const Tensor& a, const Tensor& b) { return a.lt(b); });
}

SparseMatrix gt(const SparseMatrix& A, const SparseMatrix& B) {
  return on_union("gt", A, B, [](const Tensor& a, const Tensor& b) { return a.gt(b); });
}

SparseMatrix multiply(const SparseMatrix& A, const Tensor& X) {
  const Pattern& P = A.pattern();
  return A.with_values(ops::times_dense(P.tensors_for({X}), A.values(), X, P.sym_shape()));
}

SparseMatrix operator/(const SparseMatrix& A, const SparseMatrix& B) {
  check_alike("div", A, B);
  A.pattern().check_simple("div"), B.pattern().check_simple("div");
  if (A.pattern().equals(B.pattern())) return A.with_values(A.values() / B.values());
  const auto both = A.pattern().merge(B.pattern(), /*intersect=*/true);
  const int64_t missing = A.nnz() - both.pattern.nnz();
  TORCH_CHECK_VALUE(missing == 0, "div: A stores ", missing, " entries that B does not, which would be divided by 0");
  return A.with_values(A.values() / ops::pick(B.values(), both.at_B));
}

}  // namespace gossamer
