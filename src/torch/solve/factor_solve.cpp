// SPDX-License-Identifier: BSD-3-Clause
// Op: `factor_solve`, x = A⁻¹ b, or A⁻ᵀ b if t, from a factor of A that is computed once. The derivative is that of
// every linear solve: linear_solve.h.
#include <ATen/ATen.h>

#include "core/csr.h"
#include "core/op.h"
#include "solve/factor.h"
#include "solve/handles.h"
#include "solve/linear_solve.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "factor_solve";

// Solves A X = B in place of X, (columns, n) in float64, where A is (pattern, values). Up to three steps of iterative
// refinement follow, until the backward error is below `tolerance`.
void solve_refined(const ScaledFactor& factor, TensorList pattern, const Tensor& values, Tensor& X,
                   SymIntArrayRef shape, bool t, double tolerance) {
  const Tensor B = X.clone();
  const int64_t columns = X.size(0);
  const auto residual = [&] { return B.sub(ops::spmm(pattern, values, X.t(), shape, t).t()); };
  const auto backward_error = [&](const Tensor& r) {
    const Tensor size = X.abs().amax(1).mul(factor.norm(t)).add(B.abs().amax(1));
    return r.abs().amax(1).div(size.clamp_min(std::numeric_limits<double>::min())).max().item<double>();
  };
  factor.solve(X.mutable_data_ptr<double>(), columns, t);
  if (!B.isfinite().all().item<bool>())
    return;  // What is not finite in b is not finite in x, and has no error to be judged by.
  Tensor r = residual();
  double error = backward_error(r);
  for (int step = 0; step < 3 && error > tolerance; ++step) {
    r = r.contiguous();
    factor.solve(r.mutable_data_ptr<double>(), columns, t);
    X.add_(r);
    r = residual();
    error = backward_error(r);
  }
  if (!(error < 1e-8))
    throw_singular(op_name, "the values were changed after they were factored, or, the backward error being ", error);
}

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

Tensor forward(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
               bool t) {
  check_square("solve", shape);
  const PatternTensors A = unpack(op_name, pattern, shape, t);
  check(A, factor, values, b);
  if (b.numel() == 0) return at::empty_symint(b.sym_sizes(), b.options());
  const auto factors = objects_of<ScaledFactor>(factor);
  const int64_t H = static_cast<int64_t>(factors.size()), n = b.size(0);
  const Tensor doubles = values.to(at::kDouble).reshape({-1, H});
  const double tolerance = b.scalar_type() == at::kDouble ? 4e-16 : 1e-12;
  Tensor X = b.to(at::kDouble)
                 .reshape({n, H, -1})
                 .permute({1, 2, 0})
                 .clone(at::MemoryFormat::Contiguous);  // (H, k, n), a copy that is solved in place
  for (int64_t h = 0; h < H; ++h) {
    Tensor x = X[h];
    TORCH_CHECK_VALUE(factors[h]->n() == n, "solve: b has ", n, " rows but the factor has ", factors[h]->n());
    solve_refined(*factors[h], pattern, doubles.select(1, h), x, shape, t, tolerance);
  }
  return X.permute({2, 0, 1}).reshape(b.sizes()).to(b.options()).contiguous();
}

LinearSolve solve_of(TensorList pattern, SymIntArrayRef shape, bool t) {
  const auto P = pattern.vec();
  const auto S = shape.vec();
  return {op_name, P, S, t, [=](const Tensor& v, const Tensor& b, const Tensor& factor, bool transposed) {
            return ops::factor_solve(factor, P, v, b, S, transposed);
          }};
}

Tensor autograd(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
                bool t) {
  return differentiable_solve(solve_of(pattern, shape, t), values, b, factor);
}

Tensor batched(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
               bool t) {
  return batched_solve(solve_of(pattern, shape, t), values, b, factor);
}

const Op<decltype(ops::factor_solve)> op{{
    .schema = "factor_solve(Tensor factor, Tensor[] pattern, Tensor values, Tensor b, SymInt[] shape, bool t=False) -> "
              "Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .full_precision = true,
    .meta = false,
    .where = Where::host,
    .mixed = true,
}};

}  // namespace

Tensor ops::factor_solve(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                         SymIntArrayRef shape, bool t) {
  return op(factor, pattern, values, b, shape, t);
}

}  // namespace gossamer
