// SPDX-License-Identifier: BSD-3-Clause
// x = T⁻¹ b, or T⁻ᵀ b if t, with T the named triangle of L.
//   db = solve(L, g, !t)        dL = -(db xᵀ) on T, swapped if t        x' = solve(L, b' - T' x)
#include <ATen/ops/empty.h>
#include <gossamer/kernels/triangular.h>
#include <torch/library.h>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "solve_triangular";
constexpr const char* schema =
    "solve_triangular(Tensor[] pattern, Tensor values, Tensor b, SymInt[] shape, Tensor[] levels, bool upper=False, "
    "bool unit_diagonal=False, bool t=False) -> Tensor";

void check(const PatternTensors& A, const Tensor& values, const Tensor& b, TensorList levels) {
  check_dense(op_name, "values", values, A, A.nnz(), "entries");
  check_dense(op_name, "b", b, A, A.rows, "rows");
  check_same_dtype(op_name, "b", b, "values", values);
  TORCH_CHECK_VALUE(values.dim() <= 2, op_name, ": values must be (nnz,) or (nnz, H), not ", shape_text(values));
  const bool heads = values.dim() == 2;
  TORCH_CHECK_VALUE(heads || b.dim() <= 2, op_name, ": b must be (n,) or (n, k), not ", shape_text(b));
  TORCH_CHECK_VALUE(!heads || (b.dim() >= 2 && b.dim() <= 3 && b.sym_size(1) == values.sym_size(1)), op_name,
                    ": values ", shape_text(values), " need b of shape (n, H) or (n, H, k), not ", shape_text(b));
  TORCH_CHECK_VALUE(levels.empty() || levels.size() == 2, op_name, ": levels are {level_ptr, order} or none, not ",
                    levels.size(), " tensors");
  for (size_t k = 0; k < levels.size(); ++k)
    TORCH_CHECK_VALUE(levels[k].scalar_type() == A.indptr.scalar_type() && levels[k].device() == A.indptr.device() &&
                          levels[k].dim() == 1 && levels[k].sym_size(0) == A.rows + (k == 0 ? 1 : 0),
                      op_name, ": the levels are of another matrix");
}

[[noreturn]] void throw_no_pivot(const PatternTensors& A, int64_t row) {
  const Tensor entries = A.indices.slice(0, A.indptr[row].item<int64_t>(), A.indptr[row + 1].item<int64_t>());
  const bool stored = entries.eq(row).any().item<bool>();
  throw_singular(op_name, "row ", row, stored ? " has a zero on the diagonal" : " has no diagonal entry");
}

Tensor forward(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, TensorList levels,
               bool upper, bool unit_diagonal, bool t) {
  check_square(op_name, shape);
  const PatternTensors A = unpack(op_name, pattern, shape, t);
  check(A, values, b, levels);
  const Tensor x = at::empty_symint(b.sym_sizes(), b.options());
  if (b.is_meta()) return x;
  // 16-bit numbers are solved in float32: a row of x is read by later rows and must not be rounded before.
  const auto dtype = b.element_size() == 2 ? at::kFloat : b.scalar_type();
  const Tensor v = values.to(dtype).contiguous(), from = with_compact_rows(b.to(dtype)),
               to = dtype == b.scalar_type() ? x : at::empty(b.sizes(), from.options());
  const bool heads = values.dim() == 2;
  const int64_t H = heads ? values.size(1) : 1, width = b.dim() == heads + 2 ? b.size(-1) : 1;
  int64_t bad = -1;
  with_types(op_name, dtype, A.indptr.scalar_type(), [&]<class T, class I> {
    if constexpr (sizeof(T) >= 4) {
      Levels<I> known;
      if (!levels.empty()) known = {ptr<I>(levels[0]), ptr<I>(levels[1]), t};
      bad = kernels::solve_triangular(TorchThreads{}, A.view<T, I>(v, H), {upper != t, unit_diagonal}, known,
                                      ptr<T>(from), from.stride(0), width, mutable_ptr<T>(to));
    }
  });
  if (bad >= 0) throw_no_pivot(A, bad);
  if (!to.is_same(x)) x.copy_(to);
  return x;
}

// There is no kernel for devices yet: to the host and back.
Tensor forward_on_host(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
                       TensorList levels, bool upper, bool unit_diagonal, bool t) {
  return forward(on_host(pattern), values.cpu(), b.cpu(), shape, on_host(levels), upper, unit_diagonal, t)
      .to(b.device());
}

Tensor autograd(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, TensorList levels,
                bool upper, bool unit_diagonal, bool t) {
  const auto P = pattern.vec(), levels_kept = levels.vec();
  const auto S = shape.vec();
  const auto solve = [=](const Tensor& v, const Tensor& rhs, bool transposed) {
    return ops::solve_triangular(P, v, rhs, S, levels_kept, upper, unit_diagonal, transposed);
  };
  const auto on_triangle = [=](const Tensor& v) { return ops::keep_triangle(P, v, S, upper, unit_diagonal); };
  return differentiable(
      op_name, {values, b}, [&](const variable_list& in) { return solve(in[0], in[1], t); },
      [=](const Tensor& G, const variable_list& in, const Tensor& x, const Wanted& wanted) {
        variable_list grads(2);
        const Tensor db = solve(in[0], G, !t);
        if (wanted[1]) grads[1] = db;
        if (!wanted[0]) return grads;
        const bool vectors = in[0].dim() == 2 && x.dim() == 2;  // a vector per head: sddmm wants its column spelled out
        const Tensor u = vectors ? db.neg().unsqueeze(-1) : db.neg(), w = vectors ? x.unsqueeze(-1) : x;
        grads[0] = on_triangle(t ? ops::sddmm(P, w, u, S) : ops::sddmm(P, u, w, S));
        return grads;
      },
      [=](const variable_list& at, const variable_list& moving, const Tensor& x) {
        Tensor rhs = moving[1];
        if (moving[0].defined()) {
          Tensor moved = ops::spmm(P, on_triangle(moving[0]), x, S, t);
          rhs = rhs.defined() ? rhs.sub(moved) : moved.neg();
        }
        return solve(at[0], rhs, t);
      });
}

// Batched values are more heads; a batch of b alone is more columns.
Tensor batched(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, TensorList levels,
               bool upper, bool unit_diagonal, bool t) {
  const Batch batch(op_name, pattern, {values, b});
  const auto solve = [&](const Tensor& v, const Tensor& rhs) {
    return ops::solve_triangular(pattern, v, rhs, shape, levels, upper, unit_diagonal, t);
  };
  const bool heads = values.dim() == 2;
  if (batch.has(values)) {
    const Tensor v = batch.at(values, 1), rhs = batch.at(b, 1);
    if (!heads) return batch.wrap(solve(v, rhs), 1);
    const Tensor x = solve(v.flatten(1), rhs.flatten(1, 2));
    return batch.wrap(unfold_dim(x, 1, {batch.size(), values.sym_size(1)}), 1);
  }
  const int64_t dim = heads ? 2 : 1;
  const Tensor rhs = batch.at(b, dim), x = solve(values, rhs.flatten(dim));
  if (b.dim() == dim) return batch.wrap(x, dim);
  return batch.wrap(unfold_dim(x, dim, {batch.size(), b.sym_size(dim)}), dim);
}

}  // namespace

Tensor ops::solve_triangular(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
                             TensorList levels, bool upper, bool unit_diagonal, bool t) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("gossamer::solve_triangular", "")
                             .typed<decltype(solve_triangular)>();
  return op.call(pattern, values, b, shape, levels, upper, unit_diagonal, t);
}

Tensor linalg::solve_triangular(const SparseMatrix& L, const Tensor& b, bool upper, bool unit_diagonal,
                                bool transpose) {
  const Pattern& P = L.pattern();
  const bool differentiates = c10::GradMode::is_enabled() && (b.requires_grad() || L.requires_grad());
  return ops::solve_triangular(P.tensors(transpose || differentiates), L.values(), b, P.sym_shape(), P.levels(upper),
                               upper, unit_diagonal, transpose);
}

TORCH_LIBRARY_FRAGMENT(gossamer, m) {
  m.def(schema);
}
TORCH_LIBRARY_IMPL(gossamer, CPU, m) {
  m.impl(op_name, forward);
}
TORCH_LIBRARY_IMPL(gossamer, CUDA, m) {
  m.impl(op_name, forward_on_host);
}
TORCH_LIBRARY_IMPL(gossamer, Meta, m) {
  m.impl(op_name, forward);
}
TORCH_LIBRARY_IMPL(gossamer, Autograd, m) {
  m.impl(op_name, autograd);
}
TORCH_LIBRARY_IMPL(gossamer, FuncTorchBatched, m) {
  m.impl(op_name, batched);
}

}  // namespace gossamer
