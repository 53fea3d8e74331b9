// SPDX-License-Identifier: BSD-3-Clause
// Ops: `factor_logdet`, y = log|det A| from a factor of A, and `factor_sign`, the sign of det A.
//
//   dA = g Z        y' = Z · A'        Z = A⁻ᵀ on A's pattern: inverse/inverse.cpp
#include <ATen/ATen.h>

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
  check_factor(logdet_name, factor, pattern, values, shape);
  return number_of_each(logdet_name, factor, values, [](const auto& f) { return f.log_abs_det(); }, 0);
}

Tensor sign(const Tensor& factor, const Tensor& values) {
  return number_of_each("factor_sign", factor, values, [](const auto& f) { return f.sign(); }, 1);
}

Tensor autograd_logdet(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  const auto P = pattern.vec();
  const auto S = shape.vec();
  return differentiable(
      logdet_name, {values, factor}, [&](const variable_list& in) { return ops::factor_logdet(in[1], P, in[0], S); },
      [=](const Tensor& G, const variable_list& in, const Tensor&, const Wanted&) {
        return variable_list{ops::factor_inverse(in[1], P, in[0], S, /*t=*/true).mul(G), Tensor()};
      },
      [=](const variable_list& in, const variable_list& tangents, const Tensor&) {
        const Tensor Z = ops::factor_inverse(in[1], P, in[0], S, /*t=*/true);
        return Z.dim() == 1 ? ops::dot(Z, tangents[0]) : Z.mul(tangents[0]).sum(0);
      },
      /*keep_output=*/false);
}

// Batched values are more heads, with a factor each.
Tensor batched_logdet(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return more_heads(logdet_name, pattern, values, factor, /*heads_at=*/0,
                    [&](const Tensor& v, const Tensor& f) { return ops::factor_logdet(f, pattern, v, shape); });
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

Tensor ops::factor_sign(const Tensor& factor, const Tensor& values) {
  return sign_op(factor, values);
}

}  // namespace gossamer
