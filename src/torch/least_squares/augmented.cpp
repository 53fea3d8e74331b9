// SPDX-License-Identifier: BSD-3-Clause
// Ops: `gram_factor`, and `augmented_solve`, the symmetric linear system of least squares, B being A, or Aᵀ if t:
//
//   K (r, x) = (b, c)        K = [I, B; Bᵀ, -δ² I]        (Bᵀ B + δ² I) x = Bᵀ b - c        r = b - B x
//
// K is linear in A, and the derivative is that of every linear solve: with (u, v) = K⁻¹ of the gradients of r and x,
//
//   db = u     dc = v     dA = -(u xᵀ + r vᵀ) on the pattern, swapped if t     (r, x)' = K⁻¹ (b' - B' x, c' - B'ᵀ r)
//
// By the normal equations, whose matrix has the square of B's condition; refinement on K itself (Björck 1967) brings
// back what they lose:
//
//   f = b - r - B x     h = c - Bᵀ r + δ² x     (Bᵀ B + δ² I) dx = Bᵀ f - h     dr = f - B dx
#include <ATen/ATen.h>
#include <gossamer/least_squares.h>
#include <gossamer/linalg.h>
#include <gossamer/products.h>

#include <cmath>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/op.h"
#include "solve/factor.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "lstsq";

using Pair = std::tuple<Tensor, Tensor>;

[[noreturn]] void throw_deficient(bool wide, const std::string& why) {
  throw SingularMatrixError(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
      c10::str(op_name, ": the ", wide ? "rows" : "columns", " of A are linearly dependent to working precision (", why,
               "); damp > 0 makes the problem regular"));
}

// What is left of a diagonal entry of N when it becomes a pivot is the square of the distance of its column of B to
// those before it. Below this part of the entry it is rounding.
constexpr double least_pivot = 1e-13;

void check_pivots(const ScaledFactor& factor, const double* diagonal, bool wide) {
  for (int64_t k = 0; k < factor.n(); ++k) {
    const double scale = factor.row_scale()[k], part = factor.pivot(k) / (diagonal[k] * scale * scale);
    if (!(part > least_pivot)) throw_deficient(wide, c10::str("number ", k, " has a pivot of ", part));
  }
}

Tensor factor_of(const Tensor& analysis, const Tensor& gram, bool wide) {
  TORCH_CHECK_VALUE(gram.isfinite().all().item<bool>(), op_name, ": A has an entry that is not finite");
  const auto pattern = object_of<PatternAnalysis>(analysis);
  Tensor handle;
  try {
    handle = ops::factorize(analysis, gram, "cholesky", "auto");
  } catch (const c10::ValueError& error) {
    throw_deficient(wide, error.what_without_backtrace());
  } catch (const c10::LinAlgError& error) {
    throw_deficient(wide, error.what_without_backtrace());
  }
  const SquareColumns N = pattern->with_values(nullptr);
  const int64_t factor_count = handle.numel();
  const Tensor heads = gram.to(at::kDouble).reshape({gram.size(0), factor_count}).t().contiguous();
  const auto factors = objects_of<FactoredMatrix>(handle);
  for (size_t h = 0; h < factors.size() && N.n > 0; ++h) {
    std::vector<double> diagonal(N.n, 0.0);
    const double* values = ptr<double>(heads) + h * heads.size(1);
    for (int j = 0; j < N.n; ++j)
      for (int q = N.ptr[j]; q < N.ptr[j + 1]; ++q)
        if (N.rows[q] == j) diagonal[j] = values[q];  // symmetric: by columns as by rows
    check_pivots(dynamic_cast<const ScaledFactor&>(*factors[h]), diagonal.data(), wide);
  }
  return handle;
}

Tensor factor_there(const Tensor& analysis, const Tensor& gram, bool wide) {
  return factor_of(on_host(analysis), on_host(gram), wide);
}

Tensor batched_factor(const Tensor& analysis, const Tensor& gram, bool wide) {
  const Batch batch(op_name, {analysis}, {gram});
  return batch.wrap(ops::gram_factor(analysis, batch.at(gram, 1), wide), 0);
}

// The system, its pattern and its number δ.
struct Augmented {
  std::vector<Tensor> pattern;
  std::vector<SymInt> shape;
  double damp;
  bool t;

  Tensor times(const Tensor& values, const Tensor& x, bool turned) const {  // B x, or Bᵀ x
    return ops::spmm(pattern, values, x, shape, t != turned);
  }
  Pair solve(const Tensor& factor, const Tensor& values, const Tensor& b, const Tensor& c) const {
    return ops::augmented_solve(factor, pattern, values, b, c, shape, damp, t);
  }
  Tensor outer(const Tensor& u, const Tensor& v) const {  // u vᵀ as an entry of B, on the pattern of A
    return t ? ops::sddmm(pattern, v, u, shape) : ops::sddmm(pattern, u, v, shape);
  }
};

void check(const Augmented& K, const Tensor& factor, const Tensor& values, const Tensor& b, const Tensor& c) {
  const PatternTensors A = unpack(op_name, K.pattern, K.shape, K.t);
  check_dense(op_name, "values", values, A, A.nnz(), "entries");
  TORCH_CHECK_VALUE(values.dim() == 1, op_name, ": takes one matrix at a time, values (nnz,), not ",
                    shape_text(values));
  check_dense(op_name, "b", b, A, K.shape[K.t ? 1 : 0], K.t ? "columns" : "rows");
  check_dense(op_name, "c", c, A, K.shape[K.t ? 0 : 1], K.t ? "rows" : "columns");
  check_same_dtype(op_name, "b", b, "values", values);
  check_same_dtype(op_name, "c", c, "values", values);
  TORCH_CHECK_VALUE(b.dim() <= 2 && c.dim() == b.dim() && b.sym_sizes().slice(1) == c.sym_sizes().slice(1), op_name,
                    ": b must be (m,) or (m, k), not ", shape_text(b));
  TORCH_CHECK_VALUE(factor.dim() == 0, op_name, ": a factor of shape ", shape_text(factor), " is not of one matrix");
}

// With B by columns of float64, (rows, k). Refined until nothing changes any more, or the rounding wins.
Pair solve_refined(const Augmented& K, const ScaledFactor& N, const Tensor& values, const Tensor& b, const Tensor& c) {
  constexpr int most_steps = 6;
  constexpr double rounding = 4e-16, useless = 1e-6;
  const double squared = K.damp * K.damp;
  const auto solve = [&](const Tensor& rhs) {
    const Tensor x = rhs.t().clone(at::MemoryFormat::Contiguous);
    N.solve(x.mutable_data_ptr<double>(), x.size(0), /*t=*/false);
    return x.t().contiguous();
  };
  Tensor x = solve(K.times(values, b, true).sub_(c)), r = b.sub(K.times(values, x, false));
  const auto size = [](const Tensor& v) { return v.abs().max().item<double>(); };
  double change = 1;  // of x, relative
  for (int step = 0; step < most_steps && change > rounding; ++step) {
    const Tensor f = b.sub(r).sub_(K.times(values, x, false));
    const Tensor h = c.sub(K.times(values, r, true)).add_(x, squared);
    const Tensor dx = solve(K.times(values, f, true).sub_(h)), dr = f.sub(K.times(values, dx, false));
    const double before = change, largest = size(x);
    change = largest > 0 ? size(dx) / largest : 0;
    if (!std::isfinite(change) || (step > 1 && change > before / 2)) break;
    x.add_(dx);
    r.add_(dr);
  }
  if (change > useless)
    throw_deficient(K.t, c10::str("the last refinement changed the solution by a part of ", change));
  return {r, x};
}

Pair forward(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, const Tensor& c,
             SymIntArrayRef shape, double damp, bool t) {
  const Augmented K{pattern.vec(), shape.vec(), damp, t};
  check(K, factor, values, b, c);
  const Tensor zero_x = at::zeros_symint(c.sym_sizes(), c.options());
  if (b.numel() == 0 || c.numel() == 0) return {b.clone(), zero_x};
  const auto N = std::dynamic_pointer_cast<const ScaledFactor>(object_of<FactoredMatrix>(factor));
  TORCH_CHECK_VALUE(N && N->n() == c.size(0), op_name, ": the factor is not of this matrix");
  const auto doubles = [](const Tensor& v) { return v.to(at::kDouble).reshape({v.size(0), -1}).contiguous(); };
  const auto [r, x] = solve_refined(K, *N, values.to(at::kDouble).contiguous(), doubles(b), doubles(c));
  return {r.reshape(b.sizes()).to(b.options()), x.reshape(c.sizes()).to(c.options())};
}

// All of it on the host.
Pair forward_there(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, const Tensor& c,
                   SymIntArrayRef shape, double damp, bool t) {
  const auto host = on_host(pattern);
  return on_device(forward(on_host(factor), host, on_host(values), on_host(b), on_host(c), shape, damp, t),
                   values.device());
}

Pair autograd(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, const Tensor& c,
              SymIntArrayRef shape, double damp, bool t) {
  const Augmented K{pattern.vec(), shape.vec(), damp, t};
  const auto list = [](const Pair& pair) { return variable_list{std::get<0>(pair), std::get<1>(pair)}; };
  const auto or_zero = [](const Tensor& g, const Tensor& like) { return g.defined() ? g : at::zeros_like(like); };
  const variable_list both = differentiable_many(
      "augmented_solve", {values, b, c, factor},
      [&](const variable_list& in) { return list(K.solve(in[3], in[0], in[1], in[2])); },
      [=](const variable_list& grads, const variable_list& in, const variable_list& out, const Wanted& wanted) {
        const auto [u, v] = K.solve(in[3], in[0], or_zero(grads[0], out[0]), or_zero(grads[1], out[1]));
        variable_list result(4);
        if (wanted[0]) result[0] = K.outer(u, out[1]).add(K.outer(out[0], v)).neg();
        if (wanted[1]) result[1] = u;
        if (wanted[2]) result[2] = v;
        return result;
      },
      [&](const variable_list& in, const variable_list& tangents, const variable_list& out) {
        Tensor db = or_zero(tangents[1], in[1]), dc = or_zero(tangents[2], in[2]);
        if (tangents[0].defined()) {
          db = db.sub(K.times(tangents[0], out[1], false));
          dc = dc.sub(K.times(tangents[0], out[0], true));
        }
        return list(K.solve(in[3], in[0], db, dc));
      },
      /*differentiable=*/2, /*keep_outputs=*/true);
  return {both[0], both[1]};
}

Pair batched(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b, const Tensor& c,
             SymIntArrayRef shape, double damp, bool t) {
  const auto both = one_by_one(op_name, pattern, {factor, values, b, c}, [&](const variable_list& in) {
    const auto [r, x] = ops::augmented_solve(in[0], pattern, in[1], in[2], in[3], shape, damp, t);
    return variable_list{r, x};
  });
  return {both[0], both[1]};
}

const Op<decltype(ops::gram_factor)> factor_op{{
    .schema = "gram_factor(Tensor analysis, Tensor gram, bool wide) -> Tensor",
    .forward = factor_of,
    .on_device = factor_there,
    .batched = batched_factor,
    .constant = true,
    .meta = false,
}};
const Op<decltype(ops::augmented_solve)> op{{
    .schema =
        "augmented_solve(Tensor factor, Tensor[] pattern, Tensor values, Tensor b, Tensor c, SymInt[] shape, float "
        "damp, bool t) -> (Tensor, Tensor)",
    .forward = forward,
    .on_device = forward_there,
    .autograd = autograd,
    .batched = batched,
    .full_precision = true,
    .meta = false,
}};

}  // namespace

Tensor ops::gram_factor(const Tensor& analysis, const Tensor& gram, bool wide) {
  return factor_op(analysis, gram, wide);
}

Pair ops::augmented_solve(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                          const Tensor& c, SymIntArrayRef shape, double damp, bool t) {
  return op(factor, pattern, values, b, c, shape, damp, t);
}

}  // namespace gossamer
