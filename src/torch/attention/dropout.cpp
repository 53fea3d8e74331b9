// SPDX-License-Identifier: BSD-3-Clause
// Two ops: `dropout_mask`, the factors by which dropout multiplies the weights of an attention, as a tensor, and
// `dropout` of any tensor. Both take their numbers from the counter-based generator of kernels/dropout.h.
#include <ATen/ATen.h>
#include <gossamer/kernels/dropout.h>

#include "attention/attention.h"
#include "core/op.h"

namespace gossamer {
namespace {

Tensor mask(const Tensor& indices, SymInt heads, double p, const Tensor& seed, at::ScalarType dtype) {
  if (indices.is_meta()) return at::empty_symint({indices.sym_size(0), heads}, indices.options().dtype(dtype));
  TORCH_CHECK_VALUE(seed.device() == indices.device() && seed.dim() == 0 && seed.scalar_type() == at::kLong,
                    "dropout_mask: the seed must be a 0-dim int64 tensor on ", indices.device());
  constexpr int64_t block = 16384;  // A thread draws so many numbers at a time,
  constexpr int64_t room = 16;      // and writes whole registers, the last one past the end.
  const int64_t n = indices.size(0) * heads.expect_int(), blocks = (n + block - 1) / block;
  const Dropout dropout = dropout_of(p, seed);
  const at::ScalarType sums = dtype == at::kDouble ? at::kDouble : at::kFloat;
  const Tensor factors = at::empty({n + room}, indices.options().dtype(sums));
  launch("dropout_mask", factors, at::empty({0}, at::kInt), [&]<class S, class>(auto exec) {
    if constexpr (std::is_same_v<S, Sum<S>>) {
      S* m = mutable_ptr<S>(factors);
      if constexpr (std::is_same_v<decltype(exec), Cuda>)
        return kernels::dropout_mask(exec, dropout, n, m);
      else
        exec.parallel_for(blocks, [&](int64_t k) {
          const int64_t first = k * block, size = std::min(block, n - first);
          simd([&]<int bytes> { dropout_factors<bytes / sizeof(S)>(dropout, first, size, m + first); });
        });
    }
  });
  return factors.narrow(0, 0, n).view({-1, heads.expect_int()}).to(dtype);
}

const Op<decltype(ops::dropout_mask)> mask_op{{
    .schema = "dropout_mask(Tensor indices, SymInt heads, float p, Tensor seed, ScalarType dtype) -> Tensor",
    .forward = mask,
}};

}  // namespace

Tensor ops::dropout_mask(const Tensor& indices, SymInt heads, double p, const Tensor& seed, at::ScalarType dtype) {
  return mask_op(indices, std::move(heads), p, seed, dtype);
}

std::optional<Tensor> ops::dropout_seed(double dropout, std::optional<int64_t> seed, const Tensor& x) {
  if (dropout == 0) return {};
  const auto integer = at::TensorOptions().dtype(at::kLong).device(x.device());
  if (seed) return at::full({}, *seed, integer);
  return at::randint(std::numeric_limits<int64_t>::max(), {}, integer);
}

// x ∘ m, where m is 0 with probability p, else 1 / (1 - p).
Tensor ops::dropout(const Tensor& x, double p, std::optional<int64_t> seed) {
  TORCH_CHECK_VALUE(p >= 0 && p <= 1, "dropout: p must be in [0, 1], not ", p);
  TORCH_CHECK_TYPE(x.is_floating_point(), "dropout: x must be floating point, not ", x.scalar_type());
  const std::optional<Tensor> key = ops::dropout_seed(p, seed, x);
  if (!key) return x;
  return x * ops::dropout_mask(x.detach().reshape({-1}), 1, p, *key, x.scalar_type()).view_symint(x.sym_sizes());
}

Tensor dropout(const Tensor& x, double p, bool training, std::optional<int64_t> seed) {
  return training ? ops::dropout(x, p, seed) : x;
}

static const Composites composites = Composites().def("dropout(Tensor x, float p, int? seed) -> Tensor", ops::dropout);

}  // namespace gossamer
