// SPDX-License-Identifier: BSD-3-Clause
// Front end: `lstsq`, min ‖A x - b‖² + δ² ‖x‖², from the ops of augmented.cpp. A tall A has x of K(A) (r, x) = (b, 0).
// A wide one has the smaller system of its transpose: r of K(Aᵀ) (r, w) = (0, b), which is
//
//   r = Aᵀ (A Aᵀ + δ² I)⁻¹ b = (Aᵀ A + δ² I)⁻¹ Aᵀ b        and for δ = 0 the smallest solution of A r = b
#include <ATen/ATen.h>
#include <gossamer/krylov.h>
#include <gossamer/least_squares.h>
#include <gossamer/linalg.h>
#include <gossamer/products.h>
#include <gossamer/structure.h>

#include <cmath>

#include "core/csr.h"
#include "core/op.h"

namespace gossamer {

Tensor ops::lstsq(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, double damp,
                  TensorList gram, const Tensor& diagonal, const Tensor& analysis) {
  unpack("lstsq", pattern, shape, /*t=*/false);
  const bool wide = shape[0] < shape[1];
  TORCH_CHECK_VALUE(damp >= 0 && std::isfinite(damp), "lstsq: damp must be a number ≥ 0, not ", damp);
  TORCH_CHECK_TYPE(values.is_floating_point() && b.is_floating_point(),
                   "lstsq: A and b must be real and floating-point, not ", values.scalar_type(), " and ",
                   b.scalar_type());
  TORCH_CHECK_VALUE(values.dim() == 1, "lstsq: takes one matrix at a time, values (nnz,), not ", shape_text(values));
  TORCH_CHECK_VALUE(b.dim() == 1 || b.dim() == 2, "lstsq: b must be (m,) or (m, k), not ", shape_text(b));
  TORCH_CHECK_VALUE(b.sym_size(0) == shape[0], "lstsq: b has ", b.sym_size(0), " rows but A has ", shape[0]);
  const SymInt &small = shape[wide ? 0 : 1], &large = shape[wide ? 1 : 0];
  const Tensor doubles = values.detach().to(at::kDouble);
  Tensor N = ops::spgemm(pattern, doubles, shape, pattern, doubles, shape, gram, {small, small}, wide ? nt : tn);
  if (damp > 0) N = N.index_add(0, diagonal, at::full_symint({small}, damp * damp, N.options()));
  const Tensor factor = ops::gram_factor(analysis, N, wide);
  auto size = b.sym_sizes().vec();
  size[0] = wide ? large : small;
  const Tensor zero = at::zeros_symint(size, b.options());
  if (wide) return std::get<0>(ops::augmented_solve(factor, pattern, values, zero, b, shape, damp, /*t=*/true));
  return std::get<1>(ops::augmented_solve(factor, pattern, values, b, zero, shape, damp, /*t=*/false));
}

static const Composites composites = Composites().def(
    "lstsq(Tensor[] pattern, Tensor values, Tensor b, SymInt[] shape, float damp, Tensor[] gram, Tensor diagonal, "
    "Tensor "
    "analysis) -> Tensor",
    ops::lstsq);

namespace linalg {
namespace {

struct Gram {
  Pattern pattern;
  Tensor diagonal;
};

}  // namespace

Tensor lstsq(const SparseMatrix& A, const Tensor& b, double damp, const std::string& method) {
  if (method == "lsmr") {
    KrylovOptions options{.damp = damp};
    if (A.dtype() == at::kDouble) options.rtol = 1e-12;
    return lsmr(A, b, options).x;
  }
  TORCH_CHECK_VALUE(method == "cholesky", "lstsq: method must be \"cholesky\" or \"lsmr\", not \"", method, "\"");
  const Pattern& P = A.pattern();
  P.check_simple("lstsq");
  const Gram N = P.keep<Gram>("gram", [&P] {
    const Pattern product = P.rows() < P.cols() ? P.product(P.T()) : P.T().product(P);
    const auto indices = at::TensorOptions().device(P.device()).dtype(product.index_type());
    const Pattern eye(at::arange(product.rows() + 1, indices), at::arange(product.rows(), indices), product.shape());
    const Pattern whole = product.merge(eye).pattern;
    const Tensor i = at::arange(whole.rows(), indices.dtype(at::kLong));
    return Gram{whole, std::get<1>(ops::entries(whole.indptr(), whole.indices(), whole.sym_shape(), i, i))};
  });
  return ops::lstsq(P.tensors(true), A.values(), b, P.sym_shape(), damp, N.pattern.tensors(), N.diagonal,
                    N.pattern.analysis());
}

}  // namespace linalg
}  // namespace gossamer
