// SPDX-License-Identifier: BSD-3-Clause
// x = A⁻¹ b, or A⁻ᵀ b if t, from factors that are computed once.
//   db = A⁻ᵀ g        dA = -(db xᵀ) on A, swapped if t        x' = A⁻¹ (b' - A' x)
#include <ATen/ATen.h>
#include <torch/library.h>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "solve/factor.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "factor_solve";
constexpr const char* schema =
    "factor_solve(Tensor factor, Tensor[] pattern, Tensor values, Tensor b, SymInt[] shape, bool t=False) -> Tensor";

// X: (columns, n) in float64, solved in place. Refined while the residual is worth it; A is (pattern, values).
void solve_refined(const MatrixFactor& factor, TensorList pattern, const Tensor& values, Tensor& X,
                   SymIntArrayRef shape, bool t, double enough) {
  const Tensor B = X.clone();
  const int64_t columns = X.size(0);
  const auto residual = [&] { return B.sub(ops::spmm(pattern, values, X.t(), shape, t).t()); };
  const auto backward_error = [&](const Tensor& r) {
    const Tensor size = X.abs().amax(1).mul(factor.norm(t)).add(B.abs().amax(1));
    return r.abs().amax(1).div(size.clamp_min(std::numeric_limits<double>::min())).max().item<double>();
  };
  factor.solve(X.mutable_data_ptr<double>(), columns, t);
  if (!B.isfinite().all().item<bool>()) return;  // NaN in, NaN out
  Tensor r = residual();
  double error = backward_error(r);
  for (int step = 0; step < 3 && error > enough; ++step) {
    r = r.contiguous();
    factor.solve(r.mutable_data_ptr<double>(), columns, t);
    X.add_(r);
    r = residual();
    error = backward_error(r);
  }
  if (!(error < 1e-8)) throw_singular(op_name, "the backward error is ", error);
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
  const auto factors = factors_at(factor);
  const int64_t H = static_cast<int64_t>(factors.size()), n = b.size(0);
  const auto host = on_host(pattern);
  const Tensor wide = values.to(at::kCPU, at::kDouble).reshape({-1, H});
  const double enough = b.scalar_type() == at::kDouble ? 4e-16 : 1e-12;
  Tensor X = b.to(at::kCPU, at::kDouble)
                 .reshape({n, H, -1})
                 .permute({1, 2, 0})
                 .clone(at::MemoryFormat::Contiguous);  // (H, k, n), ours to write to
  for (int64_t h = 0; h < H; ++h) {
    Tensor x = X[h];
    TORCH_CHECK_VALUE(factors[h]->n() == n, "solve: b has ", n, " rows but the factor has ", factors[h]->n());
    solve_refined(*factors[h], host, wide.select(1, h), x, shape, t, enough);
  }
  return X.permute({2, 0, 1}).reshape(b.sizes()).to(b.options()).contiguous();
}

Tensor autograd(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
                bool t) {
  const auto P = pattern.vec();
  const auto S = shape.vec();
  const auto solve = [=](const Tensor& f, const Tensor& v, const Tensor& rhs, bool transposed) {
    return ops::factor_solve(f, P, v, rhs, S, transposed);
  };
  return differentiable(
      op_name, {values, b, factor}, [&](const variable_list& in) { return solve(in[2], in[0], in[1], t); },
      [=](const Tensor& G, const variable_list& in, const Tensor& x, const Wanted& wanted) {
        variable_list grads(3);
        const Tensor db = solve(in[2], in[0], G, !t);
        if (wanted[1]) grads[1] = db;
        if (!wanted[0]) return grads;
        const bool vectors = in[0].dim() == 2 && x.dim() == 2;  // a vector per head: sddmm wants its column spelled out
        const Tensor u = vectors ? db.neg().unsqueeze(-1) : db.neg(), w = vectors ? x.unsqueeze(-1) : x;
        grads[0] = t ? ops::sddmm(P, w, u, S) : ops::sddmm(P, u, w, S);
        return grads;
      },
      [=](const variable_list& at, const variable_list& moving, const Tensor& x) {
        Tensor rhs = moving[1];
        if (moving[0].defined()) {
          const Tensor moved = ops::spmm(P, moving[0], x, S, t);
          rhs = rhs.defined() ? rhs.sub(moved) : moved.neg();
        }
        return solve(at[2], at[0], rhs, t);
      });
}

// Batched values are more heads, with a factor each; a batch of b alone is more columns.
Tensor batched(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
               bool t) {
  const Batch batch(op_name, pattern, {factor, values, b});
  const bool heads = values.dim() == 2;
  if (batch.has(values) || batch.has(factor)) {
    const Tensor f = batch.at(factor, 0), v = batch.at(values, 1), rhs = batch.at(b, 1);
    if (!heads) return batch.wrap(ops::factor_solve(f, pattern, v, rhs, shape, t), 1);
    const Tensor x = ops::factor_solve(f.flatten(), pattern, v.flatten(1), rhs.flatten(1, 2), shape, t);
    return batch.wrap(unfold_dim(x, 1, {batch.size(), values.sym_size(1)}), 1);
  }
  const int64_t dim = heads ? 2 : 1;
  const Tensor rhs = batch.at(b, dim), x = ops::factor_solve(factor, pattern, values, rhs.flatten(dim), shape, t);
  if (b.dim() == dim) return batch.wrap(x, dim);
  return batch.wrap(unfold_dim(x, dim, {batch.size(), b.sym_size(dim)}), dim);
}

}  // namespace

Tensor ops::factor_solve(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                         SymIntArrayRef shape, bool t) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("gossamer::factor_solve", "").typed<decltype(factor_solve)>();
  return op.call(factor, pattern, values, b, shape, t);
}

TORCH_LIBRARY_FRAGMENT(gossamer, m) {
  m.def(schema);
}
TORCH_LIBRARY_IMPL(gossamer, CPU, m) {
  m.impl(op_name, forward);
}
TORCH_LIBRARY_IMPL(gossamer, CUDA, m) {
  m.impl(op_name, forward);
}
TORCH_LIBRARY_IMPL(gossamer, Autograd, m) {
  m.impl(op_name, autograd);
}
TORCH_LIBRARY_IMPL(gossamer, FuncTorchBatched, m) {
  m.impl(op_name, batched);
}

}  // namespace gossamer
