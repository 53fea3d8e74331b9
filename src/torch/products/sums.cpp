// SPDX-License-Identifier: BSD-3-Clause
// Sparse with sparse, for C++: the symbolic part from the patterns, the numeric part from the ops.
#include <gossamer/products.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace gossamer {
namespace {

void check_alike(const char* op, const SparseMatrix& A, const SparseMatrix& B) {
  TORCH_CHECK_VALUE(A.shape() == B.shape(), op, ": A is ", A.rows(), " x ", A.cols(), " but B is ", B.rows(), " x ",
                    B.cols());
  TORCH_CHECK_TYPE(A.dtype() == B.dtype(), op, ": A is ", A.dtype(), " but B is ", B.dtype());
}

}  // namespace

SparseMatrix spgemm(const SparseMatrix& A, const SparseMatrix& B, const std::optional<Pattern>& mask) {
  TORCH_CHECK_VALUE(A.cols() == B.rows(), "spgemm: A is ", A.rows(), " x ", A.cols(), " and B is ", B.rows(), " x ",
                    B.cols(), ", which do not multiply");
  const Pattern C = mask ? *mask : A.pattern().product(B.pattern());
  const bool differentiates_B = c10::GradMode::is_enabled() && B.requires_grad();
  return SparseMatrix(C, ops::spgemm(A.pattern().tensors(differentiates_B), A.values(), A.pattern().sym_shape(),
                                     B.pattern().tensors(), B.values(), B.pattern().sym_shape(), C.tensors(), ops::nn));
}

SparseMatrix spadd(const SparseMatrix& A, const SparseMatrix& B, const Tensor& alpha, const Tensor& beta) {
  check_alike("spadd", A, B);
  const Tensor a = ops::scale(A.values(), alpha), b = ops::scale(B.values(), beta);
  if (A.pattern().equals(B.pattern())) return A.with_values(a + b);
  const auto both = A.pattern().merge(B.pattern());
  return SparseMatrix(both.pattern, ops::place_sum(a, both.at_A, b, both.at_B, both.pattern.nnz()));
}

SparseMatrix operator+(const SparseMatrix& A, const SparseMatrix& B) {
  const Tensor one = at::ones({}, A.values().options().requires_grad(false));
  return spadd(A, B, one, one);
}

SparseMatrix operator-(const SparseMatrix& A, const SparseMatrix& B) {
  const Tensor one = at::ones({}, A.values().options().requires_grad(false));
  return spadd(A, B, one, -one);
}

SparseMatrix SparseMatrix::matmul(const SparseMatrix& B) const {
  return spgemm(*this, B);
}

SparseMatrix hadamard(const SparseMatrix& A, const SparseMatrix& B) {
  check_alike("hadamard", A, B);
  if (A.pattern().equals(B.pattern())) return A.with_values(A.values() * B.values());
  const auto both = A.pattern().merge(B.pattern(), /*intersect=*/true);
  return SparseMatrix(both.pattern, ops::pick(A.values(), both.at_A) * ops::pick(B.values(), both.at_B));
}

}  // namespace gossamer
