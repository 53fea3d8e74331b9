// SPDX-License-Identifier: BSD-3-Clause
// Sparse Jacobians and Hessians by colouring, their patterns by probing, and roots of systems by Newton's method.
//
//   auto A = gossamer::poisson({10, 10}, torch::kFloat64);
//   auto x = torch::ones(100, torch::kFloat64), p = torch::ones(100, torch::kFloat64).requires_grad_();
//   auto J = gossamer::jacobian([&](const torch::Tensor& u) { return A.matmul(u) + u.pow(3); }, A.pattern())(x);
//   auto root = gossamer::linalg::root([&](const torch::Tensor& u, torch::TensorList params) {
//     return A.matmul(u) + u.pow(3) - params[0];
//   }, x, {p}, A.pattern());
//   root.x.sum().backward();                            // into p
//
// Products with a Jacobian are torch's forward mode, J v, or its reverse mode, vᵀ J.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

// y (m,) of x (n,); for a Hessian, a number of x (n,).
using VectorFunction = std::function<Tensor(const Tensor& x)>;

struct JacobianPatternOptions {
  int64_t points = 3;  // x, and points near it
  int64_t seed = 0;
};

// Where ∂f_i/∂x_j is not zero, at x or at one of a few random points near it. Found by some hundred products J v,
// however large x is, and by one product vᵀ J for each row that is too full for that.
Pattern jacobian_pattern(const VectorFunction& f, const Tensor& x, const JacobianPatternOptions& options = {});

struct JacobianOptions {
  std::string mode = "auto";  // "forward": J v; "reverse": vᵀ J; "auto": forward unless reverse needs less than half
  bool check = true;          // that the pattern is large enough, by one more product
  bool keep_pattern = false;  // one that was found serves later calls, and is enlarged when it does not suffice
};

// A function of x whose value is a matrix. Copies are independent.
class Jacobian {
 public:
  Jacobian(std::string op, VectorFunction f, std::optional<Pattern> pattern, JacobianOptions options);
  SparseMatrix operator()(const Tensor& x);
  const std::optional<Pattern>& pattern() const { return pattern_; }  // given, or found and kept

 private:
  std::string op_;
  VectorFunction f_;
  std::optional<Pattern> pattern_;
  JacobianOptions options_;
  bool given_;
};

// J(x)_ij = ∂f_i/∂x_j on the pattern. A pattern that is too small throws ValueError and names a row. Without one it is
// found at each x, or at the first one if it is to be kept. The values can be differentiated.
Jacobian jacobian(VectorFunction f, std::optional<Pattern> pattern = {}, JacobianOptions options = {});

// H(x)_ij = ∂²f/∂x_i∂x_j of a function whose value is a number.
Jacobian hessian(VectorFunction f, std::optional<Pattern> pattern = {}, JacobianOptions options = {});

namespace linalg {

struct RootOptions {
  double rtol = 0;  // ‖f(x)‖ ≤ max(rtol ‖f(x0)‖, atol) ends it; 0: 1e-10 in double, 1e-5 in float
  double atol = 0;
  int64_t maxiter = 50;
  std::string kind = "auto";  // of the factorisation: see factorize
};

struct RootInfo {
  int64_t iterations = 0;
  double residual = 0;  // ‖f(x)‖₂
  bool converged = false;
};

struct Root {
  Tensor x;
  RootInfo info;
};

// x with f(x, params) = 0 near x0, by Newton's method with a line search. Differentiable in the params, to any order:
// dparams = -(∂f/∂params)ᵀ J⁻ᵀ g. Throws ConvergenceError.
using ParametricFunction = std::function<Tensor(const Tensor& x, TensorList params)>;
Root root(const ParametricFunction& f, const Tensor& x0, const std::vector<Tensor>& params = {},
          std::optional<Pattern> pattern = {}, const RootOptions& options = {});

}  // namespace linalg

namespace ops {

// Colours for the columns of a pattern, or for its rows, so that those of one colour share no row (no column):
// {colour (columns or rows), at (nnz)}. Entry p of the Jacobian is element at[p] of its products with the seeds of all
// colours, which are (colours, rows), or (colours, columns).
std::tuple<Tensor, Tensor> colour(TensorList pattern, SymIntArrayRef shape, bool columns);
// The vectors to multiply with for colours first … last - 1: 1 where the colour is, else 0.
Tensor colour_seeds(const Tensor& colour, int64_t first, int64_t last, at::ScalarType dtype);

// Probing for the places of entries, kernels/probe.h: how many probes there are, the vectors of some of them, a vector
// to check with, and what their products say of the rows `open`: {rows, columns} of entries, and for each row whether
// it is open still (0), done (1) or not finite (2).
int64_t probe_count(int64_t cols, int64_t buckets, at::ScalarType dtype);
Tensor probe_seeds(int64_t cols, int64_t buckets, int64_t seed, int64_t first, int64_t last, at::ScalarType dtype);
Tensor probe_direction(int64_t cols, int64_t seed, at::ScalarType dtype);
std::tuple<Tensor, Tensor, Tensor> probe_rows(const Tensor& Y, const Tensor& product, const Tensor& open, int64_t cols,
                                              int64_t buckets, int64_t seed);

// The k-th random point near x: each element of x, or the root of their mean square where it is zero, changed by a
// sixteenth to an eighth. Signs stay, so that a logarithm of x has its value still.
Tensor probe_point(const Tensor& x, int64_t seed, int64_t k);

// The rows, ascending, in which J v is not `product`, up to rounding errors, or is not finite.
Tensor jacobian_mismatch(TensorList pattern, const Tensor& values, const Tensor& v, const Tensor& product,
                         SymIntArrayRef shape);

}  // namespace ops
}  // namespace gossamer
