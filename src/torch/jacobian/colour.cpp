// SPDX-License-Identifier: BSD-3-Clause
// Colours of a pattern and where entries lie in the products with their seeds. Integers only, on the host, once per
// pattern: nothing to differentiate.
#include <gossamer/jacobian.h>
#include <gossamer/kernels/colour.h>

#include <ATen/ATen.h>

#include "core/csr.h"
#include "core/host.h"
#include "core/op.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

std::tuple<Tensor, Tensor> forward(TensorList pattern, SymIntArrayRef shape, bool columns) {
  const KeptResults kept;
  const PatternTensors A = host_pattern("colour", pattern, shape);
  const auto options = A.indptr.options();
  const Tensor colour = empty_result({columns ? A.cols : A.rows}, options),
               at = empty_result({A.nnz()}, options.dtype(at::kLong));
  if (A.indptr.is_meta()) return {colour, at};
  // Colours of columns are those of the rows of the transpose.
  const PatternTensors T = columns ? unpack("colour", pattern, shape, /*t=*/true) : A;
  with_index_type<void>(A.indptr.scalar_type(), [&]<class, class I> {
    TORCH_CHECK_VALUE(in_bounds(T.view<I>()), "colour: the transpose does not fit the pattern");
    kernels::colour(T.view<I>(), mutable_ptr<I>(colour));
    kernels::colour_places(A.view<I>(), ptr<I>(colour), columns, mutable_ptr<int64_t>(at));
  });
  return {colour, at};
}

std::tuple<Tensor, Tensor> on_device(TensorList pattern, SymIntArrayRef shape, bool columns) {
  TORCH_CHECK_VALUE(pattern.size() >= 2, "colour: a pattern is a list of at least two tensors");
  const auto [colour, at] = forward({pattern[0].cpu(), pattern[1].cpu()}, shape, columns);
  return {colour.to(pattern[0].device()), at.to(pattern[0].device())};
}

const Op<decltype(ops::colour)> op{{
    .schema = "colour(Tensor[] pattern, SymInt[] shape, bool columns=True) -> (Tensor colour, Tensor at)",
    .forward = forward,
    .on_device = on_device,
}};

const Composites composites =
    Composites().def("colour_seeds(Tensor colour, int first, int last, ScalarType dtype) -> Tensor", ops::colour_seeds);

}  // namespace

std::tuple<Tensor, Tensor> ops::colour(TensorList pattern, SymIntArrayRef shape, bool columns) {
  return op(pattern, shape, columns);
}

Tensor ops::colour_seeds(const Tensor& colour, int64_t first, int64_t last, at::ScalarType dtype) {
  TORCH_CHECK_VALUE(colour.dim() == 1 && first <= last, "colour_seeds: wants a vector of colours, and first <= last");
  return colour.unsqueeze(0).eq(at::arange(first, last, colour.options()).unsqueeze(1)).to(dtype);
}

}  // namespace gossamer
