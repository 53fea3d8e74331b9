// SPDX-License-Identifier: BSD-3-Clause
// Ops: `incomplete_factor`, IC(0) and ILU(0), and `incomplete_jacobian`, the pattern of its derivative.
//
//   J(F) dF = s ∘ dA, J lower triangular with entries of F        dA = s ∘ J⁻ᵀ g        F' = J⁻¹ (s ∘ A')
//
// so both directions are a triangular solve, whose own derivatives give all higher ones. s is 1, and 1/2 on the
// diagonal of Cholesky (kernels/incomplete.h).
#include <ATen/ATen.h>
#include <gossamer/kernels/incomplete.h>

#include <gossamer/linalg.h>
#include "core/batch.h"
#include "core/differentiable.h"
#include "core/host.h"
#include "core/op.h"
#include "precondition/matrix.h"

namespace gossamer {
namespace {

using kernels::Incomplete;

const char* name_of(int64_t kind) {
  return kind == 0 ? "ichol" : "ilu";
}

void check_kind(int64_t kind) {
  TORCH_CHECK_VALUE(kind == 0 || kind == 1, "incomplete_factor: kind must be 0 or 1, not ", kind);
}

// The place of each diagonal entry; of a lower triangle it is the last of its row.
template <class I>
Tensor diagonal_of(const char* op, const PatternTensors& A, int64_t kind) {
  const Tensor diagonal = host_integers(A.indptr.size(0) - 1, A.indptr.scalar_type());
  const int64_t missing = kernels::find_diagonal(A.view<I>(), mutable_ptr<I>(diagonal));
  if (missing >= 0) throw_singular(op, "row ", missing, " has no diagonal entry");
  if (kind == 0)
    for (int64_t i = 0; i < diagonal.size(0); ++i)
      TORCH_CHECK_VALUE(ptr<I>(diagonal)[i] + 1 == ptr<I>(A.indptr)[i + 1], op, ": the pattern has entries above the ",
                        "diagonal, in row ", i);
  return diagonal;
}

// The matrix itself may well be regular: what is left out of an incomplete factor makes its pivots worse.
[[noreturn]] void throw_bad_pivot(int64_t kind, int64_t row, double pivot) {
  const char* help = kind == 0
                         ? ", and IC(0) needs positive ones: A is not positive definite, or what has no entry "
                           "weighs too much; a larger shift helps, or amg or jacobi"
                         : ", and ILU(0) exchanges no rows: put large entries on the diagonal, or use amg, jacobi "
                           "or factorize";
  throw SingularMatrixError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                            c10::str(name_of(kind), ": the pivot of row ", row, " is ", pivot, help));
}

Tensor forward(TensorList pattern, const Tensor& values, SymIntArrayRef shape, TensorList /*jacobian*/, int64_t kind) {
  const char* op = name_of(kind);
  check_kind(kind);
  check_square(op, shape);
  const PatternTensors A = host_pattern(op, pattern, shape);
  check_dense(op, "values", values, A, A.nnz(), "entries");
  TORCH_CHECK_VALUE(values.dim() == 1, op, ": values must be (nnz,), not ", shape_text(values));
  TORCH_CHECK_TYPE(values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble, op,
                   ": values must be float32 or float64, not ", values.scalar_type());
  const Tensor F = empty_result(values.sym_sizes(), values.options());
  if (values.is_meta()) return F;
  const Tensor v = values.contiguous();
  int64_t bad = -1;
  double pivot = 0;
  launch(op, v, A.indptr, [&]<class T, class I>(auto exec) {
    if constexpr (sizeof(T) >= 4 && Host<decltype(exec)>) {
      const Tensor diagonal = diagonal_of<I>(op, A, kind);
      bad = kernels::incomplete_factor(static_cast<Incomplete>(kind), A.view<T, I>(v, 1), ptr<I>(diagonal),
                                       mutable_ptr<T>(F));
      if (bad >= 0) pivot = ptr<T>(F)[ptr<I>(diagonal)[bad]];
    }
  });
  if (bad >= 0) throw_bad_pivot(kind, bad, pivot);
  return F;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> jacobian(TensorList pattern, SymIntArrayRef shape, int64_t kind) {
  const KeptResults kept;
  const char* op = name_of(kind);
  check_kind(kind);
  check_square(op, shape);
  const PatternTensors A = host_pattern(op, pattern, shape);
  const int64_t nnz = A.indices.size(0);
  const Tensor indptr = host_integers(nnz + 1), scale = at::ones({nnz}, at::kDouble);
  Tensor indices, from;
  with_index_type<void>(A.indptr.scalar_type(), [&]<class, class I> {
    const auto which = static_cast<Incomplete>(kind);
    const Tensor diagonal = diagonal_of<I>(op, A, kind);
    kernels::count_jacobian(which, A.view<I>(), ptr<I>(diagonal), mutable_ptr<int64_t>(indptr));
    const int64_t entries = ptr<int64_t>(indptr)[nnz];
    indices = host_integers(entries, index_type(A.indptr.scalar_type() == at::kLong, {entries}));
    from = host_integers(entries);
    with_index_type<void>(indices.scalar_type(), [&]<class, class J> {
      kernels::fill_jacobian(which, A.view<I>(), ptr<I>(diagonal), ptr<int64_t>(indptr), mutable_ptr<J>(indices),
                             mutable_ptr<int64_t>(from));
    });
    if (kind == 0) scale.index_fill_(0, diagonal.to(at::kLong), 0.5);
  });
  return {indptr.to(indices.scalar_type()), indices, from, scale};
}

// J as the triangular solve takes it, from the tensors of the op above and, after them, its transpose and its levels.
struct Jacobian {
  std::vector<Tensor> pattern, levels;
  std::vector<SymInt> shape;
  Tensor from, scale;

  explicit Jacobian(const std::vector<Tensor>& t)
      : pattern{t[0], t[1]}, shape(2, t[3].sym_size(0)), from(t[2]), scale(t[3]) {
    if (t.size() >= 7) pattern.insert(pattern.end(), t.begin() + 4, t.begin() + 7);
    if (t.size() >= 9) levels = {t[7], t[8]};
  }
  // (F, 1) at `from`.
  Tensor values(const Tensor& F) const { return at::cat({F, at::ones({1}, F.options())}).index_select(0, from); }
  Tensor solve(const Tensor& F, const Tensor& b, bool t) const {
    return ops::solve_triangular(pattern, values(F), b, shape, levels, /*upper=*/false, /*unit_diagonal=*/false, t);
  }
  Tensor scaled(const Tensor& v) const { return v.mul(scale.to(v.scalar_type())); }
};

Tensor autograd(TensorList pattern, const Tensor& values, SymIntArrayRef shape, TensorList known, int64_t kind) {
  const auto P = pattern.vec(), J = known.vec();
  const auto S = shape.vec();
  const auto jacobian_of = [P, J, S, kind] {
    if (J.size() >= 4) return Jacobian(J);
    const auto [indptr, indices, from, scale] = ops::incomplete_jacobian(P, S, kind);
    return Jacobian({indptr, indices, from, scale});
  };
  return differentiable(
      name_of(kind), {values},
      [&](const variable_list& in) { return ops::incomplete_factor(pattern, in[0], shape, known, kind); },
      [jacobian_of](const Tensor& g, const variable_list&, const Tensor& F, const Wanted&) {
        const Jacobian J_of_F = jacobian_of();
        return variable_list{J_of_F.scaled(J_of_F.solve(F, g, /*t=*/true))};
      },
      [&](const variable_list&, const variable_list& tangents, const Tensor& F) {
        const Jacobian J_of_F = jacobian_of();
        return J_of_F.solve(F, J_of_F.scaled(tangents[0]), /*t=*/false);
      });
}

Tensor batched(TensorList pattern, const Tensor& values, SymIntArrayRef shape, TensorList known, int64_t kind) {
  return one_by_one("incomplete_factor", pattern, {values}, [&](const variable_list& in) {
    return variable_list{ops::incomplete_factor(pattern, in[0], shape, known, kind)};
  })[0];
}

const Op<decltype(ops::incomplete_factor)> factor_op{{
    .schema =
        "incomplete_factor(Tensor[] pattern, Tensor values, SymInt[] shape, Tensor[] jacobian, int kind) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
    .full_precision = true,
}};
const Op<decltype(ops::incomplete_jacobian)> jacobian_op{{
    .schema =
        "incomplete_jacobian(Tensor[] pattern, SymInt[] shape, int kind) -> (Tensor indptr, Tensor indices, Tensor "
        "from, Tensor scale)",
    .forward = jacobian,
    .meta = false,
}};

}  // namespace

Tensor ops::incomplete_factor(TensorList pattern, const Tensor& values, SymIntArrayRef shape, TensorList jacobian,
                              int64_t kind) {
  return factor_op(pattern, values, shape, jacobian, kind);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> ops::incomplete_jacobian(TensorList pattern, SymIntArrayRef shape,
                                                                    int64_t kind) {
  return jacobian_op(pattern, shape, kind);
}

}  // namespace gossamer
