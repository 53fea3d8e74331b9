// SPDX-License-Identifier: BSD-3-Clause
// Front end: jacobian and hessian. Products with the seeds of all colours, and the entries read off them:
//
//   values[p] = Y[at[p]],  Y = J S or Sᵀ J,  S_jc = 1 if column j has colour c
#include <gossamer/jacobian.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "core/csr.h"
#include "jacobian/linearised.h"

namespace gossamer {
namespace {

struct Colouring {
  bool columns;
  int64_t colours;
  Tensor colour, at;
};

Colouring coloured(const Pattern& P, bool columns) {
  return P.keep<Colouring>(columns ? "colours of columns" : "colours of rows", [&] {
    const auto [colour, at] = ops::colour(P.tensors(/*with_transpose=*/true), P.sym_shape(), columns);
    return Colouring{columns, colour.numel() == 0 ? 0 : colour.max().item<int64_t>() + 1, colour, at};
  });
}

// Forward, unless reverse needs less than half the products: at least as many as the longest column has entries.
Colouring colouring(const Pattern& P, const std::string& mode) {
  if (mode != "auto") return coloured(P, mode == "forward");
  const Colouring forward = coloured(P, true);
  const int64_t longest = P.keep<int64_t>("longest column", [&] {
    return P.cols() == 0 ? int64_t{0} : std::get<0>(P.transpose()).diff().max().item<int64_t>();
  });
  if (forward.colours <= 2 * longest) return forward;
  const Colouring reverse = coloured(P, false);
  return 2 * reverse.colours < forward.colours ? reverse : forward;
}

// x, or a copy that wants a gradient and has x's tangent, which detach() alone would drop.
Tensor with_gradient(const Tensor& x) {
  if (x.requires_grad()) return x;
  const Tensor& tangent = x._fw_grad(/*level=*/0);
  const Tensor z = x.detach().requires_grad_();
  return tangent.defined() ? at::_make_dual(z, tangent, /*level=*/0) : z;
}

// ∂f/∂x, with its graph: forward mode goes over it.
Tensor gradient(const VectorFunction& f, const Tensor& x) {
  const c10::AutoGradMode on(true);
  const Tensor z = with_gradient(x);
  const Tensor y = f(z);
  TORCH_CHECK_VALUE(y.defined() && y.dim() == 0, "hessian: f must return a number, a tensor of shape (), not ",
                    y.defined() ? shape_text(y) : "undefined");
  if (!y.requires_grad()) return at::zeros_like(x);
  const Tensor g = torch::autograd::grad({y}, {z}, {}, /*retain_graph=*/true, /*create_graph=*/true,
                                         /*allow_unused=*/true)[0];
  return g.defined() ? g : at::zeros_like(x);
}

}  // namespace

CheckedValues jacobian_values(const Linearised& near, const Pattern& P, const std::string& mode, bool check,
                              int64_t seed) {
  TORCH_CHECK_VALUE(P.cols() == near.cols(), near.op(), ": the pattern is ", P.rows(), " x ", P.cols(), ", but x has ",
                    near.cols(), " elements");
  TORCH_CHECK_VALUE(P.device() == near.x().device(), near.op(), ": the pattern is on ", P.device(), ", but x is on ",
                    near.x().device());
  const Linearised f = near.expecting(P.rows());
  const Colouring by = colouring(P, mode);
  const auto dtype = near.x().scalar_type();
  const auto seeds = [&](int64_t a, int64_t b) { return ops::colour_seeds(by.colour, a, b, dtype); };
  const Tensor Y = by.colours == 0 ? at::empty({0}, near.x().options())
                   : by.columns    ? f.push(by.colours, seeds)
                                   : f.pull(by.colours, seeds);
  CheckedValues J{Y.flatten().index_select(0, by.at)};
  if (!check) return J;
  const c10::AutoGradMode off(false);
  const Tensor v = ops::probe_direction(P.cols(), seed, dtype);
  const Tensor product = f.push(1, [&](int64_t, int64_t) { return v.unsqueeze(0); })[0].detach();
  const Tensor rows =
      ops::jacobian_mismatch(P.tensors(), J.values.detach(), v.to(product.options()), product, P.sym_shape());
  if (rows.numel() == 0) return J;
  J.wrong = rows[0].item<int64_t>();
  J.finite = product[J.wrong].isfinite().item<bool>();
  return J;
}

SparseMatrix jacobian_matrix(const Linearised& near, std::optional<Pattern>& pattern, bool given,
                             const JacobianOptions& options, bool symmetric) {
  const auto found = [&] { return find_pattern(near.at(near.x().detach()), {}, symmetric); };
  const bool kept = pattern.has_value();
  if (!pattern) pattern = found();
  CheckedValues J = jacobian_values(near, *pattern, options.mode, options.check);
  if (J.wrong >= 0 && kept && !given) {  // what was found elsewhere does not suffice here
    pattern = pattern->merge(found()).pattern;
    J = jacobian_values(near, *pattern, options.mode, options.check);
  }
  TORCH_CHECK_VALUE(J.finite, near.op(), ": the derivatives of f in row ", J.wrong, " are not finite at x");
  TORCH_CHECK_VALUE(J.wrong < 0, near.op(), ": the pattern is too small: row ", J.wrong, " has other entries than the ",
                    pattern->indptr().slice(0, J.wrong, J.wrong + 2).diff().item<int64_t>(), " it stores");
  return SparseMatrix(*pattern, J.values);
}

Jacobian::Jacobian(std::string op, VectorFunction f, std::optional<Pattern> pattern, JacobianOptions options)
    : op_(std::move(op)),
      f_(std::move(f)),
      pattern_(std::move(pattern)),
      options_(std::move(options)),
      given_(pattern_.has_value()) {
  const std::string& mode = options_.mode;
  TORCH_CHECK_VALUE(mode == "auto" || mode == "forward" || mode == "reverse", op_,
                    ": mode must be auto, forward or reverse, not ", mode);
  if (pattern_) pattern_->check_simple(op_.c_str());
}

SparseMatrix Jacobian::operator()(const Tensor& x) {
  std::optional<Pattern> pattern = pattern_;
  const SparseMatrix J = jacobian_matrix(Linearised(op_, f_, x), pattern, given_, options_, op_ == "hessian");
  if (options_.keep_pattern) pattern_ = pattern;
  return J;
}

Jacobian jacobian(VectorFunction f, std::optional<Pattern> pattern, JacobianOptions options) {
  return Jacobian("jacobian", std::move(f), std::move(pattern), std::move(options));
}

Jacobian hessian(VectorFunction f, std::optional<Pattern> pattern, JacobianOptions options) {
  options.mode = "forward";
  auto g = [f = std::move(f)](const Tensor& x) { return gradient(f, x); };
  return Jacobian("hessian", std::move(g), std::move(pattern), std::move(options));
}

}  // namespace gossamer
