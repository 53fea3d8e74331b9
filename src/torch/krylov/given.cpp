// SPDX-License-Identifier: BSD-3-Clause
// Preconditioners from what is at hand: a matrix, the factors of one, a function.
#include <gossamer/krylov.h>
#include <gossamer/products.h>

#include <utility>

#include "core/csr.h"
#include "core/op.h"

namespace gossamer {
namespace {

class Given : public linalg::Preconditioner {
 public:
  using Function = std::function<Tensor(const Tensor&, bool)>;
  Given(int64_t n, Function f) : n_(n), f_(std::move(f)) {}
  int64_t size() const override { return n_; }
  Tensor apply(const Tensor& r, bool transpose) const override { return f_(r, transpose); }

 private:
  int64_t n_;
  Function f_;
};

int64_t square_size(SymIntArrayRef shape) {
  TORCH_CHECK_VALUE(shape.size() == 2 && shape[0] == shape[1], "a preconditioner must be square, not ", shape);
  return shape[0].expect_int();
}

// Of a matrix and of a factor, as handles: for Python.
Tensor matrix_preconditioner(TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return ops::preconditioner_handle(
      linalg::preconditioner(square_size(shape), [P = pattern.vec(), v = values.detach(), S = shape.vec()](
                                                     const Tensor& r, bool t) { return ops::spmm(P, v, r, S, t); }));
}
Tensor factor_preconditioner(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape,
                             bool flipped) {
  return ops::preconditioner_handle(linalg::preconditioner(
      square_size(shape),
      [factor, P = pattern.vec(), v = values.detach(), S = shape.vec(), flipped](const Tensor& r, bool t) {
        return ops::factor_solve(factor, P, v, r, S, t != flipped);
      }));
}

const Composites composites =
    Composites()
        .def("matrix_preconditioner(Tensor[] pattern, Tensor values, SymInt[] shape) -> Tensor", matrix_preconditioner)
        .def(
            "factor_preconditioner(Tensor factor, Tensor[] pattern, Tensor values, SymInt[] shape, bool flipped) -> "
            "Tensor",
            factor_preconditioner);

}  // namespace

linalg::PreconditionerPtr linalg::preconditioner(int64_t n, Given::Function f) {
  return std::make_shared<Given>(n, std::move(f));
}

linalg::PreconditionerPtr linalg::preconditioner(const SparseMatrix& M) {
  const auto shape = M.pattern().sym_shape();
  return preconditioner(square_size(shape), [M](const Tensor& r, bool t) { return spmm(M, r, t); });
}

linalg::PreconditionerPtr linalg::preconditioner(const Factor& factor) {
  return preconditioner(factor.A().rows(), [factor](const Tensor& r, bool t) { return factor.solve(r, t); });
}

}  // namespace gossamer
