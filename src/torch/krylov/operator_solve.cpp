// SPDX-License-Identifier: BSD-3-Clause
// With A x = b, or Aᵀ x = b if t:
//
//   db = A⁻ᵀ g        d params = -∂⟨db, A(params) x⟩ / ∂ params        x' = A⁻¹(b' - A' x)
//
// and for least squares, as least_squares.h has it, ∂⟨u, A(params) w⟩ more.
#include "krylov/operator_solve.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/differentiable.h"
#include "krylov/drive.h"

namespace gossamer::krylov {
namespace {

using linalg::KrylovOptions;
using linalg::LinearOperator;

Products products_of(const LinearOperator& A, const variable_list& params, const KrylovOptions& options, bool t,
                     bool m_t) {
  return {[&A, params, t](const Tensor& x) { return A.apply(x, params, t); },
          [&A, params, t](const Tensor& u) { return A.apply(u, params, !t); },
          [&options, m_t](const Tensor& r) { return options.M->apply(r, m_t); }, options.callback};
}

std::tuple<Tensor, Tensor> run(const std::string& method, const LinearOperator& A, const variable_list& params,
                               const Tensor& b, const KrylovOptions& o, bool t, bool m_t) {
  const auto [rows, cols] = A.shape();
  const Problem problem{method,     t ? cols : rows,  t ? rows : cols, b,      o.x0,      *o.rtol,
                        o.atol,     *o.maxiter,       o.restart,       o.damp, bool(o.M), m_t,
                        o.unrolled, bool(o.callback), o.group};
  return drive(problem, products_of(A, params, o, t, m_t), t ? method + " with the transpose" : method,
               o.check && !o.unrolled);
}

// Where a solve is differentiated.
struct At {
  std::string method;
  LinearOperator A;
  KrylovOptions options;
  bool t, m_t;
  variable_list params;
  Tensor b, x;

  Tensor solve(const Tensor& rhs, bool other) const {
    KrylovOptions o = options;
    o.rtol = o.adjoint_rtol, o.atol = 0, o.check = true, o.callback = {}, o.x0 = {};
    const LinearOperator there = with(params);
    return std::get<0>(operator_solve(method, there, rhs, o, t != other, m_t != other));
  }
  LinearOperator with(const variable_list& values) const {
    const LinearOperator& own = A;
    return LinearOperator(
        own.shape(), [own](const Tensor& v, const variable_list& p) { return own.apply(v, p, false); }, values,
        [own](const Tensor& u, const variable_list& p) { return own.apply(u, p, true); }, own.symmetric());
  }
  Tensor product(const Tensor& v, bool other) const { return A.apply(v, params, t != other); }
  bool wide() const { return options.damp == 0 && (t ? A.shape()[1] < A.shape()[0] : A.shape()[0] < A.shape()[1]); }

  // ∂⟨u, A(params) v⟩ / ∂ params, undefined for a parameter that wants none or has none. By aliases of the parameters:
  // v may depend on them, too, and that is not meant.
  variable_list pull(const Tensor& v, const Tensor& u) const {
    const bool record = at::GradMode::is_enabled();
    const at::AutoGradMode on(true);
    variable_list aliases, wanted, result(params.size());
    for (const Tensor& p : params) {
      aliases.push_back(p.requires_grad() ? p.view_as(p) : p);
      if (p.requires_grad()) wanted.push_back(aliases.back());
    }
    if (wanted.empty()) return result;
    const auto found = torch::autograd::grad({A.apply(v, aliases, t)}, wanted, {u}, record, record, true);
    for (size_t k = 0, at = 0; k < params.size(); ++k)
      if (params[k].requires_grad()) result[k] = found[at++];
    return result;
  }

  variable_list params_gradient(const Tensor& g, const Tensor& z) const {
    variable_list result = pull(x, z.neg());
    if (method != "lsmr") return result;
    Tensor u, w;
    if (wide()) {
      u = solve(x, true), w = g - product(z, true);
    } else {
      u = b - product(x, false);
      w = options.damp != 0 ? (g - product(z, true)) / (options.damp * options.damp) : solve(z, false);
    }
    const variable_list more = pull(w, u);
    for (size_t k = 0; k < result.size(); ++k)
      if (more[k].defined()) result[k] = result[k].defined() ? result[k] + more[k] : more[k];
    return result;
  }
};

}  // namespace

std::tuple<Tensor, Tensor> operator_solve(const std::string& method, const LinearOperator& A, const Tensor& b,
                                          const KrylovOptions& options, bool t, bool m_t) {
  if (options.unrolled) return run(method, A, A.params(), b, options, t, m_t);
  variable_list inputs{b};
  for (const Tensor& p : A.params()) inputs.push_back(p);
  std::tuple<Tensor, Tensor> result;
  {
    const at::NoGradGuard numbers_alone;
    variable_list params;
    for (const Tensor& p : A.params()) params.push_back(p.detach());
    KrylovOptions o = options;
    if (o.x0) o.x0 = o.x0->detach();
    result = run(method, A, params, b.detach(), o, t, m_t);
  }
  const variable_list outputs = differentiable_many(
      method.c_str(), inputs,
      [&](const variable_list&) { return variable_list{std::get<0>(result), std::get<1>(result)}; },
      [=](const variable_list& grads, const variable_list& in, const variable_list& out, const Wanted&) {
        const At at{method, A, options, t, m_t, {in.begin() + 1, in.end()}, in[0], out[0]};
        const Tensor db = at.solve(grads[0], /*other=*/true);
        variable_list gradients{db};
        for (const Tensor& d : at.params_gradient(grads[0], db)) gradients.push_back(d);
        return gradients;
      },
      [&](const variable_list&, const variable_list&, const variable_list&) -> variable_list {
        TORCH_CHECK_NOT_IMPLEMENTED(false, method, ": forward mode through an operator of C++ is not implemented");
      },
      1, /*keep_outputs=*/true);
  return {outputs[0], outputs[1]};
}

}  // namespace gossamer::krylov
