// SPDX-License-Identifier: BSD-3-Clause
// Ops: `factor_logdet`, y = log|det A| from a factor of A; `factor_inverse`, Z = A⁻ᵀ on A's pattern, which is the
// gradient of y; and `factor_sign`, the sign of det A.
//
//   y:  dA = g Z                                y' = Z · A'
//   Z:  dA = -(A⁻ᵀ Gᵀ A⁻ᵀ) on the pattern       Z' = -(A⁻ᵀ A'ᵀ A⁻ᵀ) on the pattern
#include <ATen/ATen.h>

#include <algorithm>

#include <gossamer/products.h>
#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/op.h"
#include "solve/device/device_factor.h"
#include "solve/factor.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

constexpr const char* logdet_name = "factor_logdet";
constexpr const char* inverse_name = "factor_inverse";

void check(const char* op, const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  check_square(op, shape);
  const PatternTensors A = unpack(op, pattern, shape, /*t=*/false);
  check_dense(op, "values", values, A, A.nnz(), "entries");
  TORCH_CHECK_VALUE(values.dim() <= 2 && factor.sym_sizes() == values.sym_sizes().slice(1), op, ": a factor of shape ",
                    shape_text(factor), " is not of values ", shape_text(values));
}

// One number a factor, on the device and in the precision of the matrix; `without_rows` for a matrix that has none,
// whose determinant is 1. `number` is asked of a ScaledFactor, or of a DeviceFactor for all of its heads.
template <class Number>
Tensor number_of_each(const char* op, const Tensor& factor, const Tensor& values, const Number& number,
                      double without_rows) {
  const auto factors = objects_of<FactoredMatrix>(factor);
  if (are_on_device(factors)) {
    TORCH_CHECK_VALUE(!values.is_cpu(), op, ": the factor is on a device, and values are not");
    const auto of_heads = [&](const DeviceFactor& some, int64_t, int64_t) { return number(some); };
    return for_heads(factors, /*dim=*/0, of_heads).reshape(factor.sizes()).to(values.options());
  }
  const Tensor all = at::empty(factor.sizes(), at::TensorOptions().dtype(at::kDouble));
  for (size_t h = 0; h < factors.size(); ++h)
    mutable_ptr<double>(all)[h] = factors[h] ? number(dynamic_cast<const ScaledFactor&>(*factors[h])) : without_rows;
  return all.to(values.options());
}

Tensor logdet(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  check(logdet_name, factor, pattern, values, shape);
  return number_of_each(logdet_name, factor, values, [](const auto& f) { return f.log_abs_det(); }, 0);
}

Tensor sign(const Tensor& factor, const Tensor& values) {
  return number_of_each("factor_sign", factor, values, [](const auto& f) { return f.sign(); }, 1);
}

// Calls visit(E) for blocks E of columns of the identity, shaped as b of factor_solve. No n × n matrix is stored.
template <class Visit>
void for_unit_columns(const Tensor& values, const c10::SymInt& n, const Visit& visit) {
  constexpr int64_t width = 64;
  const int64_t size = n.guard_int(__FILE__, __LINE__);
  for (int64_t first = 0; first < size; first += width) {
    const int64_t columns = std::min(width, size - first);
    Tensor E = at::zeros({size, columns}, values.options());
    E.diagonal(-first).fill_(1);
    if (values.dim() == 2) E = E.unsqueeze(1).expand_symint({n, values.sym_size(1), columns});
    visit(E);
  }
}

// A matrix on the pattern by its columns: entry (i, j) is row i of column(unit vector j), for blocks of 64 at a time.
template <class Column>
Tensor on_pattern_by_columns(TensorList pattern, const Tensor& values, SymIntArrayRef shape, const Column& column) {
  Tensor sum;
  for_unit_columns(values, shape[0], [&](const Tensor& E) {
    const Tensor part = ops::sddmm(pattern, column(E), E, shape);
    sum = sum.defined() ? sum.add(part) : part;
  });
  return sum.defined() ? sum : at::zeros_like(values);
}

Tensor inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  check(inverse_name, factor, pattern, values, shape);
  return on_pattern_by_columns(pattern, values, shape, [&](const Tensor& E) {
    return ops::factor_solve(factor, pattern, values, E, shape, /*t=*/true);
  });
}

Tensor autograd_logdet(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  const auto P = pattern.vec();
  const auto S = shape.vec();
  return differentiable(
      logdet_name, {values, factor}, [&](const variable_list& in) { return ops::factor_logdet(in[1], P, in[0], S); },
      [=](const Tensor& G, const variable_list& in, const Tensor&, const Wanted&) {
        return variable_list{ops::factor_inverse(in[1], P, in[0], S).mul(G), Tensor()};
      },
      [=](const variable_list& in, const variable_list& tangents, const Tensor&) {
        const Tensor Z = ops::factor_inverse(in[1], P, in[0], S);
        return Z.dim() == 1 ? ops::dot(Z, tangents[0]) : Z.mul(tangents[0]).sum(0);
      },
      /*keep_output=*/false);
}

Tensor autograd_inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  const auto P = pattern.vec();
  const auto S = shape.vec();
  // The vjp and the jvp are one map, M ↦ -(A⁻ᵀ Mᵀ A⁻ᵀ) on the pattern.
  const auto derivative = [=](const Tensor& f, const Tensor& v, const Tensor& M) {
    const auto solve = [&](const Tensor& b) { return ops::factor_solve(f, P, v, b, S, /*t=*/true); };
    return on_pattern_by_columns(P, v, S, [&](const Tensor& E) { return solve(ops::spmm(P, M, solve(E), S, true)); })
        .neg();
  };
  return differentiable(
      inverse_name, {values, factor}, [&](const variable_list& in) { return ops::factor_inverse(in[1], P, in[0], S); },
      [=](const Tensor& G, const variable_list& in, const Tensor&, const Wanted&) {
        return variable_list{derivative(in[1], in[0], G), Tensor()};
      },
      [=](const variable_list& in, const variable_list& tangents, const Tensor&) {
        return derivative(in[1], in[0], tangents[0]);
      },
      /*keep_output=*/false);
}

// Batched values are more heads, with a factor each.
Tensor batched_logdet(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return more_heads(logdet_name, pattern, values, factor, /*heads_at=*/0,
                    [&](const Tensor& v, const Tensor& f) { return ops::factor_logdet(f, pattern, v, shape); });
}
Tensor batched_inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return more_heads(inverse_name, pattern, values, factor, /*heads_at=*/1,
                    [&](const Tensor& v, const Tensor& f) { return ops::factor_inverse(f, pattern, v, shape); });
}
Tensor batched_sign(const Tensor& factor, const Tensor& values) {
  return more_heads("factor_sign", {}, values, factor, /*heads_at=*/0,
                    [](const Tensor& v, const Tensor& f) { return ops::factor_sign(f, v); });
}

const Op<decltype(ops::factor_logdet)> logdet_op{{
    .schema = "factor_logdet(Tensor factor, Tensor[] pattern, Tensor values, SymInt[] shape) -> Tensor",
    .forward = logdet,
    .autograd = autograd_logdet,
    .batched = batched_logdet,
    .meta = false,
}};
const Op<decltype(ops::factor_inverse)> inverse_op{{
    .schema = "factor_inverse(Tensor factor, Tensor[] pattern, Tensor values, SymInt[] shape) -> Tensor",
    .forward = inverse,
    .autograd = autograd_inverse,
    .batched = batched_inverse,
    .meta = false,
}};
const Op<decltype(ops::factor_sign)> sign_op{{
    .schema = "factor_sign(Tensor factor, Tensor values) -> Tensor",
    .forward = sign,
    .batched = batched_sign,
    .meta = false,
}};

}  // namespace

Tensor ops::factor_logdet(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return logdet_op(factor, pattern, values, shape);
}

Tensor ops::factor_inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return inverse_op(factor, pattern, values, shape);
}

Tensor ops::factor_sign(const Tensor& factor, const Tensor& values) {
  return sign_op(factor, values);
}

}  // namespace gossamer
