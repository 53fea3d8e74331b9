// SPDX-License-Identifier: BSD-3-Clause
// Front end: linalg::eigsh, and the op `eigsh`, which puts those of this folder together: the symmetric parts of A and
// M in float64, their transform, the pairs, and what users see of them.
#include <ATen/ATen.h>
#include <gossamer/products.h>
#include <gossamer/spectral.h>

#include <algorithm>
#include <cmath>

#include "core/csr.h"
#include "core/op.h"

namespace gossamer {
namespace {

void check_values(const char* name, const Tensor& values) {
  TORCH_CHECK_TYPE(values.is_floating_point(), "eigsh: ", name, " must be real floating-point numbers, not ",
                   values.scalar_type());
}

}  // namespace

std::tuple<Tensor, Tensor> ops::eigsh(TensorList pattern, const Tensor& a, const OptionalTensor& m,
                                      SymIntArrayRef shape, const OptionalTensor& analysis, int64_t k,
                                      std::optional<double> sigma, c10::string_view which, const OptionalTensor& v0,
                                      std::optional<int64_t> ncv, std::optional<int64_t> maxiter, double tol) {
  check_values("A", a);
  if (m) {
    check_values("M", *m);
    check_same_dtype("eigsh", "M", *m, "A", a);
  }
  TORCH_CHECK_VALUE(!sigma || std::isfinite(*sigma), "eigsh: sigma must be finite, not ", sigma.value_or(0));
  TORCH_CHECK_VALUE(tol >= 0, "eigsh: tol must not be negative, but is ", tol);
  std::vector<Tensor> host;  // a device's matrix is copied: Lanczos runs on the host
  for (const Tensor& t : pattern) host.push_back(t.cpu());
  const auto in_double = [&](const Tensor& values, const char* name) {
    return ops::symmetric_part(host, values.cpu().to(at::kDouble), shape, name);
  };
  // Symmetry is judged in the precision that the values come with.
  if (a.scalar_type() != at::kDouble) {
    ops::symmetric_part(host, a.detach().cpu().to(at::kFloat), shape, "A");
    if (m) ops::symmetric_part(host, m->detach().cpu().to(at::kFloat), shape, "M");
  }
  const Tensor A = in_double(a, "A");
  const OptionalTensor M = m ? OptionalTensor(in_double(*m, "M")) : std::nullopt;
  const int64_t n = shape[0].guard_int(__FILE__, __LINE__);
  TORCH_CHECK_VALUE(1 <= k && k <= n, "eigsh: k must be between 1 and ", n, ", the number of rows, not ", k);
  const bool dense = n <= std::max<int64_t>(3 * k, 32) || 2 * k >= n;
  const Tensor transform = ops::spectral_transform(analysis, host, A, M, shape, sigma, dense);
  const int64_t vectors = ncv.value_or(std::min(n, std::max<int64_t>(2 * k + 1, 20)));
  const double tolerance = a.scalar_type() == at::kDouble ? 1e-7 : 1e-3;  // of checks of users' gradients
  const auto [Theta, X, labels] =
      ops::eigenpairs(transform, host, A, M, shape, k, which, vectors, maxiter.value_or(1000), tol, v0, tolerance);
  return {ops::cluster_values(Theta, labels, tolerance).to(a.options()), X.to(a.options())};
}

namespace linalg {

std::tuple<Tensor, Tensor> eigsh(const SparseMatrix& A, int64_t k, const EigshOptions& options) {
  TORCH_CHECK_VALUE(A.rows() == A.cols(), "eigsh: the matrix must be square, not ", A.rows(), " x ", A.cols());
  Pattern pattern = A.pattern();
  pattern.check_simple("eigsh");
  Tensor a = A.values();
  std::optional<Tensor> m;
  const auto join = [&](const Pattern& other) {  // both on one pattern; where the other's entries are on it
    const Merged merged = pattern.merge(other);
    const bool same = merged.pattern.same_as(pattern);
    if (!same) a = ops::place(a, merged.at_A, merged.pattern.nnz());
    pattern = merged.pattern;
    return merged.at_B;
  };
  if (options.M) {
    TORCH_CHECK_VALUE(options.M->shape() == A.shape(), "eigsh: M must be ", A.rows(), " x ", A.cols(), " as A, not ",
                      options.M->rows(), " x ", options.M->cols());
    const Tensor at = join(options.M->pattern());
    m = ops::place(options.M->values(), at, pattern.nnz());
  } else if (options.sigma) {
    join(pattern.keep<Pattern>("identity", [&A] {
      return eye(A.rows(), at::TensorOptions().device(A.device())).with_index_type(A.pattern().index_type()).pattern();
    }));
  }
  const auto analysis = m || options.sigma ? std::optional(pattern.analysis()) : std::nullopt;
  return ops::eigsh(pattern.tensors(true), a, m, pattern.sym_shape(), analysis, k, options.sigma, options.which,
                    options.v0, options.ncv, options.maxiter, options.tol);
}

}  // namespace linalg

static const Composites composites = Composites().def(
    "eigsh(Tensor[] pattern, Tensor a, Tensor? m, SymInt[] shape, Tensor? analysis, int k, float? sigma, str which, "
    "Tensor? v0, int? ncv, int? maxiter, float tol) -> (Tensor, Tensor)",
    ops::eigsh);

}  // namespace gossamer
