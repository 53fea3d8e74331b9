// SPDX-License-Identifier: BSD-3-Clause
// Op and front end: `cholesky`, L Lᵀ = P A Pᵀ, as a differentiable function of the symmetric A. With J as in
// tangent.cpp, whose ops are J⁻¹ and J⁻ᵀ, and c ½ off the diagonal and 1 on it:
//
//   l' = J⁻¹ (c ∘ Σ A' over both mirror images)        dA = (c ∘ J⁻ᵀ G) at both of them
//
// This is the derivative of the factor of (A + Aᵀ) / 2: gradients are symmetric, as those of log det A are.
#include <ATen/ATen.h>
#include <gossamer/cholesky.h>
#include <gossamer/kernels/multifrontal.h>
#include <gossamer/linalg.h>

#include <algorithm>
#include <cmath>

#include "core/batch.h"
#include "core/differentiable.h"
#include "core/host.h"
#include "core/op.h"
#include "solve/cholesky/plan.h"
#include "solve/factor.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "cholesky";

using PlanAndPattern = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

PlanAndPattern pattern_of(const Tensor& analysis, TensorList pattern, SymIntArrayRef shape) {
  const KeptResults kept;
  check_square(op_name, shape);
  const PatternTensors A = host_pattern(op_name, pattern, shape);
  const auto analysed = object_of<PatternAnalysis>(analysis);
  TORCH_CHECK_VALUE(analysed->nnz() == A.nnz() && analysed->n() == A.rows, op_name,
                    ": the analysis is of another matrix");
  TORCH_CHECK_VALUE(analysed->symmetric(), op_name, ": A must be symmetric, but its pattern is not");
  const SquareColumns C = analysed->with_values(nullptr);
  auto plan = std::make_shared<CholeskyPlan>();
  plan->tree = analysed->cholesky_tree();
  plan->entries = kernels::factor_entries(PatternView<int>{C.n, C.n, C.ptr[C.n], C.ptr, C.rows}, *plan->tree);
  const FactorEntries& L = plan->entries;
  const auto type = index_type(A.indptr.scalar_type() == at::kLong, {L.count()});
  Tensor perm = at::empty({C.n}, at::kLong);
  for (int k = 0; k < C.n; ++k) mutable_ptr<int64_t>(perm)[plan->tree->rank[k]] = k;
  const Tensor indptr = at::tensor(L.indptr, at::kLong).to(type), indices = at::tensor(L.indices, at::kInt).to(type);
  return {handle_of<CholeskyPlan>({plan}, {}), indptr, indices, perm, at::tensor(L.at, at::kLong)};
}

// The integers go to the device of the pattern; the handle stays on the host, as all handles do.
PlanAndPattern pattern_of_device(const Tensor& analysis, TensorList pattern, SymIntArrayRef shape) {
  const auto [plan, indptr, indices, perm, at] = pattern_of(on_host(analysis), on_host(pattern), shape);
  const auto there = [&pattern](const Tensor& t) { return t.to(pattern[0].device()); };
  return {plan, there(indptr), there(indices), there(perm), there(at)};
}

void check_symmetric(const CholeskyPlan& plan, const double* values) {
  const FactorEntries& L = plan.entries;
  std::vector<double> lower(L.count(), 0.0);
  const auto& destination = plan.tree->destination;
  for (size_t p = 0; p < destination.size(); ++p) {
    TORCH_CHECK_VALUE(std::isfinite(values[p]), op_name, ": the matrix has an entry that is not finite");
    if (destination[p] >= 0) lower[L.at[p]] = values[p];
  }
  for (size_t p = 0; p < destination.size(); ++p)
    TORCH_CHECK_VALUE(lower[L.at[p]] == values[p], op_name, ": A must be symmetric: ", lower[L.at[p]], " and ",
                      values[p], " are mirror images");
}

Tensor forward(const Tensor& plan_handle, TensorList factor, const Tensor& values, const Tensor& at) {
  const auto plan = object_of<CholeskyPlan>(on_host(plan_handle));
  check_factor_pattern(op_name, *plan, factor);
  const Tensor A = checked_doubles(op_name, "values", values, static_cast<int64_t>(plan->entries.at.size()));
  TORCH_CHECK_VALUE(at.sizes() == values.sizes(), op_name, ": at has shape ", shape_text(at), " but values have ",
                    shape_text(values));
  check_symmetric(*plan, ptr<double>(A));
  const std::unique_ptr<double[]> L(new double[plan->tree->size()]);
  const int64_t row = kernels::factor_cholesky(torch_pool(), *plan->tree, ptr<double>(A), L.get());
  TORCH_CHECK_VALUE(row < 0, op_name, ": the matrix is not positive definite: the pivot of row ", row,
                    " is not positive");
  return plan->collect(L.get()).to(values.options());
}

// c: ½ off the diagonal, which is the last entry of each row, and 1 on it.
Tensor halves(TensorList factor, const Tensor& like) {
  const Tensor last = factor[0].slice(0, 1).to(at::kLong).sub(1);
  return at::full_symint({factor[1].sym_size(0)}, 0.5, like.options()).index_fill(0, last, 1.0);
}

Tensor autograd(const Tensor& plan, TensorList factor, const Tensor& values, const Tensor& at) {
  const auto F = factor.vec();
  return differentiable(
      op_name, {values, plan, at}, [&](const variable_list& in) { return ops::cholesky(in[1], F, in[0], in[2]); },
      [F](const Tensor& G, const variable_list& in, const Tensor& l, const Wanted&) {
        const Tensor y = ops::cholesky_adjoint(in[1], F, l, G).mul(halves(F, l));
        return variable_list{y.index_select(0, in[2]), Tensor(), Tensor()};
      },
      [F](const variable_list& in, const variable_list& tangents, const Tensor& l) {
        const Tensor sums = at::zeros_like(l).index_add(0, in[2], tangents[0]);
        return ops::cholesky_tangent(in[1], F, l, sums.mul(halves(F, l)));
      });
}

Tensor batched(const Tensor& plan, TensorList factor, const Tensor& values, const Tensor& at) {
  return one_by_one(op_name, factor, {values},
                    [&](const variable_list& in) { return variable_list{ops::cholesky(plan, factor, in[0], at)}; })[0];
}

const Op<decltype(ops::cholesky_pattern)> pattern_op{{
    .schema = "cholesky_pattern(Tensor analysis, Tensor[] pattern, SymInt[] shape) -> (Tensor, Tensor, Tensor, Tensor, "
              "Tensor)",
    .forward = pattern_of,
    .on_device = pattern_of_device,
    .meta = false,
}};
const Op<decltype(ops::cholesky)> op{{
    .schema = "cholesky(Tensor plan, Tensor[] factor, Tensor values, Tensor at) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .full_precision = true,
    .meta = false,
}};

}  // namespace

PlanAndPattern ops::cholesky_pattern(const Tensor& analysis, TensorList pattern, SymIntArrayRef shape) {
  return pattern_op(analysis, pattern, shape);
}

Tensor ops::cholesky(const Tensor& plan, TensorList factor, const Tensor& values, const Tensor& at) {
  return op(plan, factor, values, at);
}

namespace linalg {
namespace {

struct Kept {
  Tensor plan, perm, at;
  Pattern L;
};

}  // namespace

Cholesky cholesky(const SparseMatrix& A) {
  const SparseMatrix symmetric = A.original().value_or(A);  // Aᵀ is A
  const Pattern& P = symmetric.pattern();
  P.check_simple(op_name);
  check_square(op_name, P.sym_shape());
  const Kept kept = P.keep<Kept>("cholesky", [&P] {
    const auto [plan, indptr, indices, perm, at] = ops::cholesky_pattern(P.analysis(), P.tensors(true), P.sym_shape());
    return Kept{plan, perm, at, Pattern(indptr, indices, P.shape(), /*check=*/false)};
  });
  const Tensor l = ops::cholesky(kept.plan, {kept.L.indptr(), kept.L.indices()}, symmetric.values(), kept.at);
  return {SparseMatrix(kept.L, l), kept.perm};
}

}  // namespace linalg
}  // namespace gossamer
