// SPDX-License-Identifier: BSD-3-Clause
// Sparse with sparse, for C++: the symbolic part from the patterns, the numeric part from the ops.
#include <gossamer/products.h>

#include <ATen/ATen.h>

#include <gossamer/elementwise.h>
#include "core/csr.h"
#include "products/alike.h"
#include "products/pairs.h"

namespace gossamer {

void check_alike(const char* op, const SparseMatrix& A, const SparseMatrix& B) {
  TORCH_CHECK_VALUE(A.shape() == B.shape(), op, ": A is ", A.rows(), " x ", A.cols(), " but B is ", B.rows(), " x ",
                    B.cols());
  TORCH_CHECK_VALUE(A.device() == B.device(), op, ": A is on ", A.device(), " but B is on ", B.device());
  TORCH_CHECK_VALUE(A.values().sizes().slice(1) == B.values().sizes().slice(1), op, ": A has values ",
                    shape_text(A.values()), " but B has ", shape_text(B.values()));
}

namespace {

// Without a product where the factor is 1, as every A + B and the A of every A - B has it.
Tensor scaled(const Tensor& values, const Number& factor) {
  if (const auto* tensor = std::get_if<Tensor>(&factor)) return ops::times(values, *tensor);
  const auto& number = std::get<at::Scalar>(factor);
  return number.equal(1) ? values : values * number;
}

// Pattern and values of A B at once, if the patterns have not met; the pattern is kept with P, as P.product does.
// Values that a transform of torch.func made are not taken: it would find its way into what is kept.
std::optional<SparseMatrix> first_product(const Pattern& P, const Tensor& a, const Pattern& Q, const Tensor& b) {
  if (P.index_type() != Q.index_type()) return first_product(P.widened(), a, Q.widened(), b);
  if (!has_numbers(a) || !has_numbers(b) || P.keeps("product", Q)) return std::nullopt;
  const auto [indptr, indices, c] = ops::first_product(P.tensors(), a, P.shape(), Q.tensors(), b, Q.shape());
  const Pattern C(indptr, indices, {P.rows(), Q.cols()}, /*check=*/false);
  return SparseMatrix(P.keep<Pattern>("product", [&] { return C; }, Q), c);
}

}  // namespace

SparseMatrix spgemm(const SparseMatrix& A, const SparseMatrix& B, const std::optional<Pattern>& mask) {
  TORCH_CHECK_VALUE(A.cols() == B.rows(), "spgemm: A is ", A.rows(), " x ", A.cols(), " and B is ", B.rows(), " x ",
                    B.cols(), ", which do not multiply");
  const auto original = A.original();  // Aᵀ B is a product of its own
  if (const auto Bt = B.original(); original && Bt && !mask) return spgemm(*Bt, *original).T();  // (B A)ᵀ
  const SparseMatrix& left = original ? *original : A;
  Pattern P = left.pattern(), Q = B.pattern();
  P.check_simple("spgemm"), Q.check_simple("spgemm");
  const auto [a, b] = without_integers(left.values(), B.values());
  if (!mask && !original)
    if (auto first = first_product(P, a, Q, b)) return *first;
  const Pattern C = mask ? *mask : A.pattern().product(Q);
  C.check_simple("spgemm");
  Pattern R = C;
  if (P.index_type() != Q.index_type() || P.index_type() != R.index_type())
    P = P.widened(), Q = Q.widened(), R = R.widened();
  // A device reads the transpose of A, for Aᵀ B and for the gradient of B, and the host does without.
  const auto tensors = P.device().is_cuda() ? P.tensors_for({b}, original.has_value()) : P.tensors();
  return SparseMatrix(C, ops::spgemm(tensors, a, P.sym_shape(), Q.tensors(), b, Q.sym_shape(), R.tensors(),
                                     R.sym_shape(), original ? ops::tn : ops::nn));
}

SparseMatrix spadd(const SparseMatrix& A, const SparseMatrix& B, const Number& alpha, const Number& beta) {
  check_alike("spadd", A, B);
  Tensor a = scaled(A.values(), alpha), b = scaled(B.values(), beta);
  const auto type = at::promote_types(a.scalar_type(), b.scalar_type());
  a = a.to(type), b = b.to(type);
  if (A.pattern().equals(B.pattern())) return A.with_values(a + b);
  const bool alike = A.pattern().index_type() == B.pattern().index_type();
  const Pattern P = alike ? A.pattern() : A.pattern().widened(), Q = alike ? B.pattern() : B.pattern().widened();
  if (!P.keeps("union pattern", Q)) {
    const auto [C, c] = P.first_sum(a, Q, b);
    return SparseMatrix(C, c);
  }
  const auto both = P.merge(Q);
  return SparseMatrix(both.pattern, ops::place_sum(a, both.at_A, b, both.at_B, both.pattern.nnz()));
}

SparseMatrix operator+(const SparseMatrix& A, const SparseMatrix& B) {
  return spadd(A, B);
}

SparseMatrix operator-(const SparseMatrix& A, const SparseMatrix& B) {
  return spadd(A, B, at::Scalar(1), at::Scalar(-1));
}

SparseMatrix SparseMatrix::matmul(const SparseMatrix& B) const {
  return spgemm(*this, B);
}

SparseMatrix hadamard(const SparseMatrix& A, const SparseMatrix& B) {
  check_alike("hadamard", A, B);
  A.pattern().check_simple("hadamard"), B.pattern().check_simple("hadamard");
  if (A.pattern().equals(B.pattern())) return A.with_values(A.values() * B.values());
  const auto both = A.pattern().merge(B.pattern(), /*intersect=*/true);
  return SparseMatrix(both.pattern, ops::pick(A.values(), both.at_A) * ops::pick(B.values(), both.at_B));
}

}  // namespace gossamer
