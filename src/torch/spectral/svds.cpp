// SPDX-License-Identifier: BSD-3-Clause
// Op: `above_rounding`, which checks singular values and passes them on. Front end: linalg::svds, from eigenvalues. The
// largest ones are the largest of [0 A; Aᵀ 0], whose vectors are [u; v] / √2; the smallest ones the roots of those of
// Aᵀ A or A Aᵀ, whichever is smaller, nearest to 0.
#include <ATen/ATen.h>
#include <gossamer/products.h>
#include <gossamer/spectral.h>

#include <cmath>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/op.h"

namespace gossamer {
namespace {

// Beside a singular value that is zero, u and v are not determined by each other.
Tensor checked(const Tensor& S, const Tensor& largest, double rounding) {
  TORCH_CHECK_VALUE(S.numel() == 0 || (S.min() > rounding * largest).all().item<bool>(),
                    "svds: the singular values asked for must be positive, but one is ", S.min().item<double>(),
                    ", which is zero to working precision: A has not so many");
  return S.clone();
}

Tensor autograd(const Tensor& S, const Tensor& largest, double rounding) {
  return differentiable(
      "above_rounding", {S, largest},
      [&](const variable_list& in) { return ops::above_rounding(in[0], in[1], rounding); },
      [](const Tensor& G, const variable_list&, const Tensor&, const Wanted&) { return variable_list{G, Tensor()}; },
      [](const variable_list& in, const variable_list& tangents, const Tensor&) {
        return tangents[0].defined() ? tangents[0].clone() : at::zeros_like(in[0]);
      },
      /*keep_output=*/false);
}

Tensor batched(const Tensor& S, const Tensor& largest, double rounding) {
  return one_by_one("svds", {}, {S, largest}, [&](const variable_list& in) {
    return variable_list{ops::above_rounding(in[0], in[1], rounding)};
  })[0];
}

const Op<decltype(ops::above_rounding)> op{{
    .schema = "above_rounding(Tensor S, Tensor largest, float rounding) -> Tensor",
    .forward = checked,
    .autograd = autograd,
    .batched = batched,
    .meta = false,
}};

}  // namespace

Tensor ops::above_rounding(const Tensor& S, const Tensor& largest, double rounding) {
  return op(S, largest, rounding);
}

namespace linalg {
namespace {

SparseMatrix augmented(const SparseMatrix& A) {
  const Pattern& P = A.pattern();
  const Pattern both = P.keep<Pattern>("augmented", [&P] {
    const auto [indptr, indices, perm] = P.transpose();
    const int64_t rows = P.rows() + P.cols();
    return Pattern(at::cat({P.indptr(), indptr.narrow(0, 1, P.cols()).add(P.nnz())}),
                   at::cat({P.indices().add(P.rows()), indices}), {rows, rows}, /*check=*/false);
  });
  return SparseMatrix(both, at::cat({A.values(), A.values().index_select(0, P.transpose_perm())}));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> svds(const SparseMatrix& A, int64_t k, const std::string& which,
                                        std::optional<int64_t> maxiter, double tol) {
  const int64_t m = A.rows(), n = A.cols();
  TORCH_CHECK_VALUE(which == "LM" || which == "SM", "svds: which must be \"LM\" or \"SM\", not \"", which, "\"");
  TORCH_CHECK_VALUE(1 <= k && k <= std::min(m, n), "svds: k must be between 1 and ", std::min(m, n),
                    ", the smaller side of A, not ", k);
  A.pattern().check_simple("svds");
  EigshOptions options;
  options.maxiter = maxiter, options.tol = tol;
  const double eps = A.dtype() == at::kDouble ? 1e-13 : 1e-6;
  if (which == "LM") {
    options.which = "LA";
    const auto [found, X] = eigsh(augmented(A), k, options);
    const Tensor S = ops::above_rounding(found, found.detach().max(), eps);
    const Tensor scaled = X * std::sqrt(2.0);
    return {scaled.narrow(0, 0, m), S, scaled.narrow(0, m, n).t()};
  }
  options.sigma = 0;
  const bool tall = m >= n;
  const auto [squares, X] = eigsh(tall ? A.T().matmul(A) : A.matmul(A.T()), k, options);
  const Tensor S = ops::above_rounding(squares, A.values().detach().square().sum(), eps).sqrt();
  const Tensor other = (tall ? A.matmul(X) : A.T().matmul(X)).div(S);
  return tall ? std::tuple(other, S, X.t()) : std::tuple(X, S, other.t());
}

}  // namespace linalg
}  // namespace gossamer
