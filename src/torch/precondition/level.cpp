// SPDX-License-Identifier: BSD-3-Clause
// One level of smoothed aggregation: its plan, and its prolongation for any values. amg.h has the equations.
#include <ATen/ATen.h>
#include <gossamer/kernels/aggregate.h>
#include <gossamer/kernels/incomplete.h>
#include <gossamer/products.h>
#include <gossamer/reduce.h>
#include <gossamer/structure.h>

#include <cmath>

#include "core/arguments.h"
#include "core/host.h"
#include "core/launch.h"
#include "precondition/amg.h"

namespace gossamer {
namespace {

template <class I>
Tensor integers(const std::vector<I>& numbers) {
  const Tensor t = host_integers(static_cast<int64_t>(numbers.size()), sizeof(I) == 4 ? at::kInt : at::kLong);
  std::copy(numbers.begin(), numbers.end(), mutable_ptr<I>(t));
  return t;
}

template <class I>
PatternView<I> view_of(const Pattern& P) {
  return {P.rows(), P.cols(), P.nnz(), ptr<I>(P.indptr()), ptr<I>(P.indices())};
}

// S = I - w D⁻¹ A_F without a derivative, in one pass.
SparseMatrix fused_smoothing(const Pattern& kept, const SparseMatrix& A, double w, double& bound) {
  const Tensor v = A.values().contiguous(), S = empty_result({SymInt(kept.nnz())}, v.options());
  launch("amg", v, A.indptr(), [&]<class T, class I>(auto exec) {
    if constexpr (sizeof(T) >= 4 && Host<decltype(exec)>)
      bound = kernels::smoothing(Csr<T, I>{view_of<I>(A.pattern()), ptr<T>(v)}, view_of<I>(kept), static_cast<T>(w),
                                 mutable_ptr<T>(S));
  });
  return SparseMatrix(kept, S);
}

// An estimate of the largest eigenvalue of D⁻¹ A_F. A diagonally dominant matrix has row sums of at most 2, and on
// grids that is the eigenvalue; others, such as coarse levels, have larger row sums than eigenvalues, and ten steps of
// the power method, from a vector that is always the same, tell them to a tenth.
double largest_eigenvalue(const Pattern& kept, const SparseMatrix& A) {
  double bound = 0;
  const SparseMatrix S = fused_smoothing(kept, A, 1, bound);  // D⁻¹ A_F = I - S
  if (bound <= 2.001 || !std::isfinite(bound)) return bound > 0 ? bound : 1;
  Tensor x = at::arange(A.rows(), at::kDouble).mul(0.6180339887498949).frac().sub(0.5).to(A.dtype());
  double lambda = 1;
  for (int step = 0; step < 10; ++step) {
    x = x.div(ops::norm(x));
    x = x.sub(spmm(S, x));
    lambda = ops::norm(x).item<double>();
  }
  return lambda > 0 && std::isfinite(lambda) ? lambda : bound;
}

// Where the entries of A_F, and those that it leaves out, are in A; the rows of the latter.
using Places = std::tuple<Tensor, Tensor, Tensor>;
Places places_of(const Pattern& kept, const Pattern& A) {
  const auto find = [&]() -> Places {
    const Tensor columns = kept.indices().to(at::kLong);
    const Tensor at = std::get<1>(ops::entries(A.indptr(), A.indices(), A.sym_shape(), kept.row_indices(), columns));
    const Tensor weak = at::ones({A.nnz()}, at::kBool).index_fill(0, at, false).nonzero().squeeze(1);
    return {at, weak, A.row_indices().index_select(0, weak)};
  };
  return kept.keep<Places>("amg places", find, A);
}

// The same in public ops.
SparseMatrix smoothing(const Pattern& kept, const SparseMatrix& A, const Tensor& w) {
  const Tensor& v = A.values();
  const Tensor scale = ops::pick(v, diagonal_places(A.pattern())).reciprocal().mul(w.neg());
  Tensor strong = v, diagonal = at::ones({A.rows()}, v.options());
  if (kept.nnz() < A.nnz()) {
    const auto [at, weak, weak_rows] = places_of(kept, A.pattern());
    const Tensor lumped = at::zeros({A.rows()}, v.options()).index_add(0, weak_rows, ops::pick(v, weak));
    strong = ops::pick(v, at);
    diagonal = diagonal.add(scale.mul(lumped));
  }
  const Tensor S = SparseMatrix(kept, strong).scale_rows(scale).values();
  return SparseMatrix(kept, S.add(ops::place(diagonal, diagonal_places(kept), S.size(0))));
}

// Whether a number of these wants a derivative, or is hidden by a transform.
bool is_plain(const Tensor& t) {
  return is_readable(t) && !wants_derivative(t);
}

}  // namespace

Tensor diagonal_places(const Pattern& A) {
  return A.keep<Tensor>("diagonal places", [&A] {
    const Tensor places = host_integers(A.rows(), A.index_type());
    with_index_type<void>(A.index_type(), [&]<class, class I> {
      TORCH_INTERNAL_ASSERT(kernels::find_diagonal(view_of<I>(A), mutable_ptr<I>(places)) < 0);
    });
    return places;
  });
}

SparseMatrix with_whole_diagonal(const SparseMatrix& A) {
  const Pattern& P = A.pattern();
  // The identity on the rows that have no diagonal entry.
  const auto missing = P.keep<SparseMatrix>("missing diagonal", [&P] {
    std::vector<int64_t> rows;
    with_index_type<void>(P.index_type(), [&]<class, class I> { rows = kernels::without_diagonal(view_of<I>(P)); });
    const Tensor i = integers(rows);
    return from_coo(i, i, at::ones({i.size(0)}, at::kDouble), P.shape());
  });
  const SparseMatrix whole = missing.nnz() == 0 ? A : spadd(A, missing.to(A.dtype()));
  const Tensor d = ops::pick(whole.values(), diagonal_places(whole.pattern())), zero = d.detach().eq(0);
  if (is_readable(zero) && !zero.any().item<bool>()) return whole;  // a transform has no numbers to look at
  const Tensor ones = ops::place(zero.to(A.dtype()), diagonal_places(whole.pattern()), whole.nnz());
  return whole.with_values(whole.values().add(ones));
}

LevelPlan plan_level(const SparseMatrix& A, Nodes& nodes, double theta) {
  const KeptTensors kept_tensors;
  const at::NoGradGuard constant;
  const Pattern& P = A.pattern();
  const Tensor v = A.values().detach().contiguous();
  LevelPlan plan;
  launch("amg", v, P.indptr(), [&]<class V, class I>(auto exec) {
    if constexpr (sizeof(V) >= 4 && Host<decltype(exec)>) {
      const kernels::NodeRows rows(std::move(nodes.ptr));
      const auto graph = kernels::strong_graph(Csr<V, I>{view_of<I>(P), ptr<V>(v)}, rows, theta);
      auto T = kernels::tentative(kernels::aggregate(graph), rows, nodes.B, nodes.vectors);
      const Tensor values = at::tensor(T.values, at::kDouble).to(A.dtype());
      plan.T = SparseMatrix(integers(T.indptr), integers(T.indices), values, {A.rows(), T.node_ptr.back()}, false);
      nodes = {std::move(T.node_ptr), std::move(T.B), nodes.vectors};
      const bool all = graph.nodes() < A.rows() || static_cast<int64_t>(graph.indices.size()) + A.rows() == A.nnz();
      if (all) {
        plan.kept = P;
      } else {
        const auto kept = kernels::without_weak(view_of<I>(P), graph);
        plan.kept = Pattern(integers(kept.indptr), integers(kept.indices), P.shape(), /*check=*/false);
      }
    }
  });
  if (plan.T.cols() > 0) plan.lambda = largest_eigenvalue(plan.kept, A.with_values(v));
  return plan;
}

SparseMatrix prolongation(const LevelPlan& plan, const SparseMatrix& A, const Tensor& omega) {
  if (plan.T.cols() == 0) return plan.T;
  const Tensor w = omega.to(A.dtype()).div(plan.lambda);
  double unused = 0;
  if (is_plain(A.values()) && is_plain(w))
    return spgemm(fused_smoothing(plan.kept, A, w.item<double>(), unused), plan.T);
  return spgemm(smoothing(plan.kept, A, w), plan.T);
}

}  // namespace gossamer
