// SPDX-License-Identifier: BSD-3-Clause
// Front end: linalg::root, Newton's method with a line search, and its derivative by the implicit function theorem:
//
//   J(x) d = -f(x),  x ← x + t d        f(x, p) = 0  ⇒  dp = -(∂f/∂p)ᵀ J⁻ᵀ g
#include <gossamer/convergence.h>
#include <gossamer/jacobian.h>
#include <gossamer/linalg.h>
#include <gossamer/reduce.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <utility>

#include "core/csr.h"
#include "core/differentiable.h"
#include "jacobian/linearised.h"

namespace gossamer::linalg {
namespace {

double norm_of(const Tensor& t) {
  return ops::norm(t).item<double>();
}

struct Problem {
  ParametricFunction f;
  std::shared_ptr<std::optional<Pattern>> pattern;  // given, or what was found so far
  bool given;
  RootOptions options;

  // x with J x = b, or Jᵀ x = b. The params are those of the call, so what is differentiated is made anew.
  Tensor solve(const Tensor& x, const std::vector<Tensor>& params, const Tensor& b, bool transpose) const {
    const Linearised near("root", [this, &params](const Tensor& z) { return f(z, params); }, x);
    return factorize(jacobian_matrix(near, *pattern, given, {}), options.kind).solve(b, transpose);
  }
};

[[noreturn]] void fail(const std::string& why) {
  throw ConvergenceError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, why);
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

Root newton(const Problem& problem, Tensor x, const std::vector<Tensor>& params) {
  constexpr double shortest = 0x1p-30;
  const RootOptions& options = problem.options;
  Tensor y = problem.f(x, params);
  TORCH_CHECK_VALUE(y.defined() && y.sizes() == x.sizes(), "root: f must return as many numbers as x has, ",
                    shape_text(x), ", not ", y.defined() ? shape_text(y) : "undefined");
  const bool single = x.scalar_type() == at::kFloat;
  const double eps = single ? 0x1p-23 : 0x1p-52, rtol = options.rtol > 0 ? options.rtol : single ? 1e-5 : 1e-10;
  double size = norm_of(y);
  const double goal = std::max(rtol * size, options.atol);
  for (int64_t k = 0; k <= options.maxiter; ++k) {
    if (size <= goal) return {x, {k, size, true}};
    if (!std::isfinite(size)) fail("root: f is not finite at iteration " + std::to_string(k));
    if (k == options.maxiter) break;
    const Tensor step = problem.solve(x, params, y.neg(), /*transpose=*/false);
    const bool small = norm_of(step) <= 8 * eps * norm_of(x);
    double length = 1;
    for (; length >= shortest; length /= 2) {
      const Tensor trial = x + length * step, y_trial = problem.f(trial, params);
      if (const double size_trial = norm_of(y_trial); size_trial <= (1 - 1e-4 * length) * size) {
        x = trial, y = y_trial, size = size_trial;
        break;
      }
      if (small) break;
    }
    if (small) return {x, {k + 1, size, true}};
    if (length < shortest)
      fail("root: no step makes f fall at iteration " + std::to_string(k) + ", where its norm is " + number(size));
  }
  fail("root: the norm of f is " + number(size) + " after " + std::to_string(options.maxiter) + " iterations, not " +
       number(goal));
}

// -(∂f/∂params)ᵀ J⁻ᵀ g for the wanted ones. The partial derivatives are taken by aliases of the params, through which
// alone they are reached: x depends on the params, too.
variable_list gradients(const Problem& problem, const Tensor& g, const variable_list& params, const Tensor& x,
                        const Wanted& wanted) {
  const bool recorded = c10::GradMode::is_enabled();
  const Tensor u = problem.solve(x, params, g, /*transpose=*/true);
  const c10::AutoGradMode on(true);
  variable_list aliases = params, sought, grads(params.size());
  for (size_t k = 0; k < params.size(); ++k)
    if (wanted[k]) {
      aliases[k] = recorded ? params[k].alias() : params[k].detach().requires_grad_();
      sought.push_back(aliases[k]);
    }
  const Tensor y = problem.f(recorded ? x : x.detach(), aliases);
  if (!y.requires_grad()) return grads;
  auto found = torch::autograd::grad({y}, sought, {u.neg()}, /*retain_graph=*/recorded, /*create_graph=*/recorded,
                                     /*allow_unused=*/true);
  for (size_t k = 0, q = 0; k < params.size(); ++k)
    if (wanted[k]) grads[k] = std::move(found[q++]);
  return grads;
}

}  // namespace

Root root(const ParametricFunction& f, const Tensor& x0, const std::vector<Tensor>& params,
          std::optional<Pattern> pattern, const RootOptions& options) {
  TORCH_CHECK_TYPE(at::isFloatingType(x0.scalar_type()), "root: x must have a floating-point dtype, not ",
                   x0.scalar_type());
  TORCH_CHECK_VALUE(x0.dim() == 1, "root: x must be a vector (n,), not shape ", shape_text(x0));
  const bool given = pattern.has_value();
  const Problem problem{f, std::make_shared<std::optional<Pattern>>(std::move(pattern)), given, options};
  Root found;
  {
    const c10::AutoGradMode off(false);
    variable_list constants;
    for (const Tensor& p : params) constants.push_back(p.detach());
    found = newton(problem, x0.detach().clone(), constants);
  }
  if (params.empty()) return found;
  found.x = differentiable(
      "root", params, [x = found.x](const variable_list&) { return x; },
      [problem](const Tensor& g, const variable_list& in, const Tensor& x, const Wanted& wanted) {
        return gradients(problem, g, in, x, wanted);
      },
      [](const variable_list&, const variable_list&, const Tensor&) -> Tensor {
        TORCH_CHECK_NOT_IMPLEMENTED(false, "root: no forward mode in C++, whose forward mode does not nest");
      });
  return found;
}

}  // namespace gossamer::linalg
