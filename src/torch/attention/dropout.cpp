// SPDX-License-Identifier: BSD-3-Clause
// Two ops: `dropout_mask`, the factors by which dropout multiplies the weights of an attention, as a tensor, and
// `dropout` of any tensor. Both take their numbers from the counter-based generator of kernels/dropout.h.
#include <ATen/ATen.h>
#include <gossamer/kernels/dropout.h>

#include "attention/attention.h"
#include "core/op.h"

namespace gossamer {
namespace {

Tensor mask(const Tensor& indices, SymInt heads_, double p, const Tensor& seed, at::ScalarType dtype,
            const Optional& keys) {
  if (indices.is_meta()) return at::empty_symint({indices.sym_size(0), heads_}, indices.options().dtype(dtype));
  TORCH_CHECK_VALUE(seed.device() == indices.device() && seed.dim() == 0 && seed.scalar_type() == at::kLong,
                    "dropout_mask: the seed must be a 0-dim int64 tensor on ", indices.device());
  if (keys) check_keys("dropout_mask", *keys, indices);
  const int64_t entries = indices.size(0), heads = heads_.expect_int();
  int64_t n = 0;
  TORCH_CHECK_VALUE(heads >= 0 && !__builtin_mul_overflow(entries, heads, &n) && n < INT64_MAX / 8,
                    "dropout_mask: ", entries, " entries cannot have ", heads, " heads");
  const int64_t block = std::max<int64_t>(16384 / std::max<int64_t>(heads, 1), 1);  // entries of a thread at a time
  constexpr int64_t room = 16;  // Whole registers are written, the last one past the end.
  const Dropout dropout = dropout_of(p, seed, keys);
  const at::ScalarType sums = dtype == at::kDouble ? at::kDouble : at::kFloat;
  const Tensor factors = at::empty({n + room}, indices.options().dtype(sums));
  launch("dropout_mask", factors, at::empty({0}, at::kInt), [&]<class S, class>(auto exec) {
    if constexpr (std::is_same_v<S, Sum<S>>) {
      S* m = mutable_ptr<S>(factors);
      if constexpr (std::is_same_v<decltype(exec), Cuda>)
        return kernels::dropout_mask(exec, dropout, entries, heads, m);
      else
        exec.parallel_for((entries + block - 1) / block, [&](int64_t k) {
          const int64_t first = k * block, size = std::min(block, entries - first);
          simd([&]<int bytes> { entry_factors<bytes / sizeof(S)>(dropout, first, size, heads, m + first * heads); });
        });
    }
  });
  return factors.narrow(0, 0, n).view({entries, heads}).to(dtype);
}

const Op<decltype(ops::dropout_mask)> mask_op{{
    .schema = "dropout_mask(Tensor indices, SymInt heads, float p, Tensor seed, ScalarType dtype, "
              "Tensor? keys=None) -> Tensor",
    .forward = mask,
}};

}  // namespace

Tensor ops::dropout_mask(const Tensor& indices, SymInt heads, double p, const Tensor& seed, at::ScalarType dtype,
                         const Optional& keys) {
  return mask_op(indices, std::move(heads), p, seed, dtype, keys);
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
