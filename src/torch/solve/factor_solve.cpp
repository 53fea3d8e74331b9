// SPDX-License-Identifier: BSD-3-Clause
// Op: `factor_solve`, x = A⁻¹ b, or A⁻ᵀ b if t, from a factor of A that is computed once. The derivative is that of
// every linear solve: linear_solve.h.
#include <ATen/ATen.h>

#include "core/csr.h"
#include "core/op.h"
#include "memory/pages.h"
#include "solve/device/device_factor.h"
#include "solve/factor.h"
#include "solve/linear_solve.h"
#include "solve/refine.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "factor_solve";

void check(const PatternTensors& A, const Tensor& factor, const Tensor& values, const Tensor& b) {
  check_dense(op_name, "values", values, A, A.nnz(), "entries");
  check_dense(op_name, "b", b, A, A.rows, "rows");
  check_same_dtype(op_name, "b", b, "values", values);
  const int64_t heads = values.dim() - 1;
  TORCH_CHECK_VALUE(heads <= 1 && factor.sym_sizes() == values.sym_sizes().slice(1), op_name, ": a factor of shape ",
                    shape_text(factor), " is not of values ", shape_text(values));
  TORCH_CHECK_VALUE(b.dim() > heads && b.dim() <= heads + 2 && b.sym_sizes().slice(1, heads) == factor.sym_sizes(),
                    "solve: b must be ", heads ? "(n, H) or (n, H, k)" : "(n,) or (n, k)", ", not ", shape_text(b));
}

// A backward error above which a solution is refined: one that good factors stay below or, if asked, a rounding error.
double tolerance_for(const Tensor& b, bool refine) {
  return b.scalar_type() != at::kDouble ? 1e-12 : refine ? 4e-16 : 1e-14;
}

void check_rows(int64_t n, const FactoredMatrix& factor) {
  TORCH_CHECK_VALUE(factor.n() == n, "solve: b has ", n, " rows but the factor has ", factor.n());
}

// x of one head, B and x being (n, columns) in float64.
Tensor solve_on_host(const std::shared_ptr<const FactoredMatrix>& any_factor, TensorList pattern, const Tensor& values,
                     const Tensor& B, SymIntArrayRef shape, bool t, double tolerance) {
  const auto factor = std::dynamic_pointer_cast<const ScaledFactor>(any_factor);
  TORCH_CHECK_VALUE(factor, op_name, ": the factor is on a device, and b is not");
  check_rows(B.size(0), *factor);
  const auto solve = [&](const Tensor& b) {
    const Tensor x = empty_result(b.sym_sizes(), b.options()).copy_(b);
    factor->solve_rows(x.mutable_data_ptr<double>(), x.size(1), t);
    return x;
  };
  const auto product = [&](const Tensor& x) { return ops::spmm(pattern, values, x, shape, t); };
  return solve_refined(op_name, solve, product, B, at::scalar_tensor(factor->norm(t), B.options()), 0, tolerance);
}

Tensor forward(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
               bool t, bool refine) {
  check_square("solve", shape);
  const PatternTensors A = unpack(op_name, pattern, shape, t);
  check(A, factor, values, b);
  if (b.numel() == 0) return at::empty_symint(b.sym_sizes(), b.options());
  const auto factors = objects_of<FactoredMatrix>(factor);
  const int64_t H = static_cast<int64_t>(factors.size()), n = b.size(0);
  const Tensor doubles = values.to(at::kDouble).reshape({-1, H});
  const Tensor B = b.to(at::kDouble).reshape({n, H, -1});
  std::vector<Tensor> solutions;
  for (int64_t h = 0; h < H; ++h)
    solutions.push_back(
        solve_on_host(factors[h], pattern, doubles.select(1, h), B.select(1, h), shape, t, tolerance_for(b, refine)));
  const Tensor x = H == 1 ? solutions[0] : at::stack(solutions, 1);
  return x.reshape(b.sizes()).to(b.options()).contiguous();
}

// All heads at once, where they were factored together; or by the host, if that is where the factor is.
Tensor forward_on_device(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                         SymIntArrayRef shape, bool t, bool refine) {
  const auto factors = objects_of<FactoredMatrix>(on_host(factor));
  if (!are_on_device(factors)) {
    const at::Device device = DeviceOf(op_name).all(pattern, values, b);
    return on_device(forward(on_host(factor), on_host(pattern), on_host(values), on_host(b), shape, t, refine), device);
  }
  check_square("solve", shape);
  const PatternTensors A = unpack(op_name, pattern, shape, t);
  check(A, factor, values, b);
  if (b.numel() == 0) return at::empty_symint(b.sym_sizes(), b.options());
  const int64_t H = static_cast<int64_t>(factors.size()), n = b.size(0);
  check_rows(n, *factors[0]);
  const Tensor doubles = values.to(at::kDouble).reshape({-1, H}), B = b.to(at::kDouble).reshape({n, H, -1});
  const Tensor x = for_heads(factors, /*dim=*/1, [&](const DeviceFactor& some, int64_t first, int64_t count) {
    const Tensor v = doubles.narrow(1, first, count);
    return solve_refined(
        op_name, [&](const Tensor& rhs) { return some.solve(rhs, t); },
        [&](const Tensor& X) { return ops::spmm(pattern, v, X, shape, t); }, B.narrow(1, first, count),
        some.norm(t).unsqueeze(1), /*dim=*/0, tolerance_for(b, refine));
  });
  return x.reshape(b.sizes()).to(b.options()).contiguous();
}

LinearSolve solve_of(TensorList pattern, SymIntArrayRef shape, bool t, bool refine) {
  const auto P = pattern.vec();
  const auto S = shape.vec();
  return {op_name, P, S, t, [=](const Tensor& v, const Tensor& b, const Tensor& factor, bool transposed) {
            return ops::factor_solve(factor, P, v, b, S, transposed, refine);
          }};
}

Tensor autograd(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
                bool t, bool refine) {
  return differentiable_solve(solve_of(pattern, shape, t, refine), values, b, factor);
}

Tensor batched(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
               bool t, bool refine) {
  return batched_solve(solve_of(pattern, shape, t, refine), values, b, factor);
}

const Op<decltype(ops::factor_solve)> op{{
    .schema =
        "factor_solve(Tensor factor, Tensor[] pattern, Tensor values, Tensor b, SymInt[] shape, bool t=False, bool "
        "refine=False) -> Tensor",
    .forward = forward,
    .on_device = forward_on_device,
    .autograd = autograd,
    .batched = batched,
    .full_precision = true,
    .meta = false,
}};

}  // namespace

Tensor ops::factor_solve(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                         SymIntArrayRef shape, bool t, bool refine) {
  return op(factor, pattern, values, b, shape, t, refine);
}

}  // namespace gossamer
