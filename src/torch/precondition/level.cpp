// SPDX-License-Identifier: BSD-3-Clause
// One level of smoothed aggregation: its plan, and its prolongation for any values. amg.h has the equations.
#include <ATen/ATen.h>
#include <gossamer/kernels/aggregate.h>
#include <gossamer/kernels/incomplete.h>
#include <gossamer/products.h>
#include <gossamer/structure.h>

#include "core/host.h"
#include "core/launch.h"
#include "precondition/amg.h"

namespace gossamer {
namespace {

Tensor integers(const std::vector<int64_t>& numbers, at::ScalarType type) {
  return at::tensor(numbers, at::kLong).to(type);
}

// The rows of `places`, entries of P in ascending order.
Tensor rows_at(const Pattern& P, const Tensor& places) {
  return P.row_indices().index_select(0, places.to(at::kLong));
}

// I - w D⁻¹ A_F on the pattern of A_F.
SparseMatrix smoothing(const LevelPlan& plan, const SparseMatrix& A, const Tensor& w) {
  const Tensor& v = A.values();
  const Tensor scale = ops::pick(v, plan.diagonal).reciprocal().mul(w.neg());
  Tensor diagonal = at::ones({}, v.options());
  if (plan.weak.defined()) {
    const Tensor lumped = at::zeros({A.rows()}, v.options()).index_add(0, plan.weak_rows, ops::pick(v, plan.weak));
    diagonal = diagonal.add(scale.mul(lumped));
  }
  const SparseMatrix F(plan.kept, plan.at.defined() ? ops::pick(v, plan.at) : v);
  const Tensor S = F.scale_rows(scale).values();
  return F.with_values(S.add(ops::place(diagonal.expand({A.rows()}), plan.kept_diagonal, S.size(0))));
}

// The largest eigenvalue of D⁻¹ A_F = I - S, by as many steps of the power method as tell it to a tenth, from a vector
// without a pattern that is always the same.
double largest_eigenvalue(const SparseMatrix& S) {
  const Tensor k = at::arange(S.rows(), S.values().options().dtype(at::kDouble));
  Tensor x = k.mul(0.6180339887498949).frac().sub(0.5).to(S.dtype());
  double lambda = 1;
  for (int step = 0; step < 10; ++step) {
    x = x.div(x.norm());
    const Tensor y = x.sub(spmm(S, x));
    lambda = y.norm().item<double>();
    if (!(lambda > 0)) return 1;
    x = y;
  }
  return lambda;
}

}  // namespace

Tensor diagonal_places(const Pattern& A) {
  return A.keep<Tensor>("diagonal places", [&A] {
    const KeptResults kept;
    const Tensor places = host_integers(A.rows(), A.index_type());
    with_index_type<void>(A.index_type(), [&]<class, class I> {
      const PatternView<I> view{A.rows(), A.cols(), A.nnz(), ptr<I>(A.indptr()), ptr<I>(A.indices())};
      TORCH_INTERNAL_ASSERT(kernels::find_diagonal(view, mutable_ptr<I>(places)) < 0);
    });
    return places;
  });
}

SparseMatrix with_whole_diagonal(const SparseMatrix& A) {
  const Pattern& P = A.pattern();
  // The identity on the rows that have no diagonal entry.
  const auto missing = P.keep<SparseMatrix>("missing diagonal", [&P] {
    const KeptResults kept;
    const Tensor i = at::arange(P.rows(), at::kLong);
    const Tensor which = std::get<0>(ops::entries(P.indptr(), P.indices(), P.sym_shape(), i, i));
    const Tensor rows = at::ones({P.rows()}, at::kBool).index_fill(0, which, false).nonzero().squeeze(1);
    return from_coo(rows, rows, at::ones({rows.size(0)}, at::kDouble), P.shape());
  });
  const SparseMatrix whole = missing.nnz() == 0 ? A : spadd(A, missing.to(A.dtype()));
  const Tensor d = ops::pick(whole.values(), diagonal_places(whole.pattern())), zero = d.detach().eq(0);
  if (!zero.any().item<bool>()) return whole;
  const Tensor ones = ops::place(zero.to(A.dtype()), diagonal_places(whole.pattern()), whole.nnz());
  return whole.with_values(whole.values().add(ones));
}

LevelPlan plan_level(const SparseMatrix& A, Nodes& nodes, double theta) {
  const KeptResults kept;
  const at::NoGradGuard constant;
  const Pattern& P = A.pattern();
  const Tensor v = A.values().detach().contiguous();
  const auto type = P.index_type();
  LevelPlan plan;
  kernels::Tentative T;
  kernels::SplitEntries split;
  launch("amg", v, P.indptr(), [&]<class V, class I>(auto exec) {
    if constexpr (sizeof(V) >= 4 && Host<decltype(exec)>) {
      const Csr<V, I> view{{A.rows(), A.cols(), A.nnz(), ptr<I>(P.indptr()), ptr<I>(P.indices())}, ptr<V>(v)};
      const auto graph = kernels::strong_graph(view, nodes.ptr, theta);
      T = kernels::tentative(kernels::aggregate(graph), nodes.ptr, nodes.B, nodes.vectors);
      if (graph.nodes() == A.rows()) split = kernels::split_entries(view, graph);
    }
  });
  plan.T = SparseMatrix(integers(T.indptr, type), integers(T.indices, type),
                        at::tensor(T.values, at::kDouble).to(A.dtype()), {A.rows(), T.node_ptr.back()}, false);
  nodes = {std::move(T.node_ptr), std::move(T.B), nodes.vectors};
  plan.diagonal = diagonal_places(P);
  plan.kept = P;
  if (!split.weak.empty()) {
    plan.at = integers(split.kept, type), plan.weak = integers(split.weak, type);
    plan.weak_rows = rows_at(P, plan.weak);
    const Tensor counts = at::bincount(rows_at(P, plan.at), {}, A.rows()).cumsum(0);
    plan.kept = Pattern(at::cat({at::zeros({1}, at::kLong), counts}).to(type), P.indices().index_select(0, plan.at),
                        P.shape(), /*check=*/false);
  }
  plan.kept_diagonal = diagonal_places(plan.kept);
  if (plan.T.cols() > 0) plan.lambda = largest_eigenvalue(smoothing(plan, A.with_values(v), at::ones({}, v.options())));
  return plan;
}

SparseMatrix prolongation(const LevelPlan& plan, const SparseMatrix& A, const Tensor& omega) {
  if (plan.T.cols() == 0) return plan.T;
  return spgemm(smoothing(plan, A, omega.to(A.dtype()).div(plan.lambda)), plan.T);
}

}  // namespace gossamer
