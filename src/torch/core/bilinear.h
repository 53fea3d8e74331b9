// SPDX-License-Identifier: BSD-3-Clause
// Complex operands of a product, by real products: the kernels are real.
//
//   f(a, b) = f(Re a, Re b) - f(Im a, Im b) + i (f(Re a, Im b) + f(Im a, Re b))        for bilinear f
//
// The derivatives need no more: a vjp conjugates the operand it keeps, which leaves real ones as they are.
#pragma once
#include <ATen/ops/complex.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>

namespace gossamer {

template <class F>
at::Tensor bilinear(const at::Tensor& a, const at::Tensor& b, const F& f) {
  const at::Tensor re_a = at::real(a), im_a = at::imag(a), re_b = at::real(b), im_b = at::imag(b);
  return at::complex(f(re_a, re_b) - f(im_a, im_b), f(re_a, im_b) + f(im_a, re_b));
}

}  // namespace gossamer
