// SPDX-License-Identifier: BSD-3-Clause
// Front end: linalg::svds, from eigenvalues. The largest ones are the largest of [0 A; Aᵀ 0], whose vectors are
// [u; v] / √2; the smallest ones the roots of those of Aᵀ A or A Aᵀ, whichever is smaller, nearest to 0.
#include <ATen/ATen.h>
#include <gossamer/products.h>
#include <gossamer/spectral.h>

#include <cmath>

#include "core/csr.h"

namespace gossamer::linalg {
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

// Beside a singular value that is zero, u and v are not determined by each other.
void check_positive(const Tensor& S, const Tensor& largest, double rounding) {
  TORCH_CHECK_VALUE(S.numel() == 0 || (S.min() > rounding * largest).item<bool>(),
                    "svds: the singular values asked for must be positive, but one is ", S.min().item<double>(),
                    ", which is zero to working precision: A has not so many");
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
    const auto [S, X] = eigsh(augmented(A), k, options);
    check_positive(S.detach(), S.detach().max(), eps);
    const Tensor scaled = X * std::sqrt(2.0);
    return {scaled.narrow(0, 0, m), S, scaled.narrow(0, m, n).t()};
  }
  options.sigma = 0;
  const bool tall = m >= n;
  const auto [squares, X] = eigsh(tall ? A.T().matmul(A) : A.matmul(A.T()), k, options);
  check_positive(squares.detach(), A.values().detach().norm().square(), eps);
  const Tensor S = squares.sqrt(), other = (tall ? A.matmul(X) : A.T().matmul(X)).div(S);
  return tall ? std::tuple(other, S, X.t()) : std::tuple(X, S, other.t());
}

}  // namespace gossamer::linalg
