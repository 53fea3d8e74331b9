// SPDX-License-Identifier: BSD-3-Clause
#include "core/batch.h"

#include <ATen/functorch/BatchedTensorImpl.h>

#include <algorithm>

namespace gossamer {

using at::Tensor;
using at::functorch::maybeGetBatchedImpl;

Batch::Batch(const char* op, at::TensorList pattern, at::TensorList inputs) {
  for (const Tensor& t : pattern)
    TORCH_CHECK_VALUE(!maybeGetBatchedImpl(t), op,
                      ": vmap over patterns is not possible; all matrices of a batch share one");
  for (const Tensor& t : inputs)
    if (const auto* batched = maybeGetBatchedImpl(t); batched && batched->level() > level_) {
      level_ = batched->level();
      size_ = batched->value().sym_size(batched->bdim());
    }
}

bool Batch::has(const Tensor& t) const {
  const auto* batched = maybeGetBatchedImpl(t);
  return batched && batched->level() == level_;
}

Tensor Batch::at(const Tensor& t, int64_t dim) const {
  if (has(t)) {
    const auto* batched = maybeGetBatchedImpl(t);
    return batched->value().movedim(batched->bdim(), dim);
  }
  auto size = t.sym_sizes().vec();
  size.insert(size.begin() + dim, size_);
  return t.unsqueeze(dim).expand_symint(size);
}

Tensor Batch::wrap(const Tensor& t, int64_t dim) const {
  return at::functorch::makeBatched(t, dim, level_);
}

Tensor unfold_dim(const Tensor& t, int64_t dim, std::initializer_list<c10::SymInt> sizes) {
  auto size = t.sym_sizes().vec();
  size.erase(size.begin() + dim);
  size.insert(size.begin() + dim, sizes.begin(), sizes.end());
  return t.reshape_symint(size);
}

}  // namespace gossamer
