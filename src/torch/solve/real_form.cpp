// SPDX-License-Identifier: BSD-3-Clause
// Ops: complex matrices in solves, which factor real ones. The real form of a complex matrix of n rows has 2n: every
// entry z becomes the block
//
//   [ Re z  -Im z ]
//   [ Im z   Re z ]        and every x[i] the pair Re x[i], Im x[i].
//
// Its pattern is A ⊗ [1 1; 1 1]. All of this is composite, so the derivatives are those of the real solve.
#include <ATen/ATen.h>
#include <gossamer/linalg.h>
#include <gossamer/structure.h>

#include "core/csr.h"
#include "core/host.h"
#include "core/op.h"

namespace gossamer {
namespace {

Tensor pairs(const Tensor& b) {  // (n, …) → (2n, …)
  return at::view_as_real(b.resolve_conj()).movedim(-1, 1).flatten(0, 1);
}
Tensor from_pairs(const Tensor& x) {  // (2n, …) → (n, …)
  const Tensor parts = x.unflatten(0, {-1, 2});
  return at::complex(parts.select(1, 0), parts.select(1, 1));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> ops::real_form(TensorList pattern, SymIntArrayRef shape) {
  const KeptResults kept;
  TORCH_CHECK_VALUE(pattern.size() >= 2, "real_form: a pattern is {indptr, indices}, not ", pattern.size(), " tensors");
  const auto integers = pattern[0].options();
  const Tensor block_indptr = at::arange(0, 5, 2, integers), block_indices = at::arange(4, integers).remainder(2);
  const std::array<SymInt, 2> block_shape = {2, 2};
  const auto [indptr, indices, from_A, from_block] =
      ops::kron_pattern(pattern, shape, {block_indptr, block_indices}, block_shape);
  return {indptr, indices, from_block * pattern[1].sym_size(0) + from_A};
}

Tensor ops::real_values(const Tensor& values, const Tensor& positions) {
  TORCH_CHECK_TYPE(values.is_complex(), "real_values: values must be complex, not ", values.scalar_type());
  const Tensor re = at::real(values), im = at::imag(values);
  return at::stack({re, im.neg(), im, re}).flatten(0, 1).index_select(0, positions);
}

Tensor ops::complex_solve(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                          SymIntArrayRef shape, bool t, bool refine) {
  TORCH_CHECK_TYPE(b.is_complex(), "solve: A is complex but b is ", b.scalar_type());
  const auto solve = [&](const Tensor& rhs) {
    return ops::factor_solve(factor, pattern, values, rhs, shape, t, refine);
  };
  // The transpose of the real form is the real form of Aᴴ, and Aᵀ x = b is Aᴴ x̄ = b̄.
  return t ? from_pairs(solve(pairs(b.conj()))).conj().resolve_conj() : from_pairs(solve(pairs(b)));
}

static const Composites composites =
    Composites()
        .def("real_form(Tensor[] pattern, SymInt[] shape) -> (Tensor indptr, Tensor indices, Tensor positions)",
             ops::real_form)
        .def("real_values(Tensor values, Tensor positions) -> Tensor", ops::real_values)
        .def(
            "complex_solve(Tensor factor, Tensor[] pattern, Tensor values, Tensor b, SymInt[] shape, bool t=False, "
            "bool refine=False) -> Tensor",
            ops::complex_solve);

}  // namespace gossamer
