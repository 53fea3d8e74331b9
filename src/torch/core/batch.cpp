// SPDX-License-Identifier: BSD-3-Clause
#include "core/batch.h"

#include <ATen/functorch/BatchedTensorImpl.h>

// After the other one, whose calls of functions with the same names would else be ambiguous.
#include <ATen/LegacyBatchedTensorImpl.h>

#include <algorithm>

namespace gossamer {

using at::Tensor;

namespace {

struct Batched {
  Tensor value;
  int64_t dim, level;
  bool older;
};

std::optional<Batched> batched(const Tensor& t) {
  if (const auto* now = at::functorch::maybeGetBatchedImpl(t))
    return Batched{now->value(), now->bdim(), now->level(), /*older=*/false};
  if (!t.defined() || !at::isBatchedTensor(t)) return std::nullopt;
  const auto* old = at::unsafeGetBatchedImpl(t);
  TORCH_CHECK_VALUE(old->bdims().size() == 1, "vmap: batches of gradients cannot be nested; use torch.func.vmap");
  return Batched{old->value(), old->bdims()[0].dim(), old->bdims()[0].level(), /*older=*/true};
}

}  // namespace

Batch::Batch(const char* op, at::TensorList pattern, at::TensorList inputs) {
  for (const Tensor& t : pattern)
    TORCH_CHECK_VALUE(!batched(t), op, ": vmap over patterns is not possible; all matrices of a batch share one");
  for (const Tensor& t : inputs) {
    const auto found = batched(t);
    if (!found) continue;
    const bool inner =
        found->older == older_ ? found->level > level_ : older_;  // torch.func's are within the older ones
    if (level_ >= 0 && !inner) continue;
    level_ = found->level, older_ = found->older;
    size_ = found->value.sym_size(found->dim);
  }
  below_.emplace(older_ ? c10::DispatchKey::Batched : c10::DispatchKey::FuncTorchBatched);
}

bool Batch::has(const Tensor& t) const {
  const auto found = batched(t);
  return found && found->level == level_ && found->older == older_;
}

void Batch::check_members(const char* op) const {
  TORCH_CHECK_VALUE(size_ > 0, op, ": vmap over an empty batch: its results would have no shape");
}

Tensor Batch::at(const Tensor& t, int64_t dim) const {
  if (has(t)) {
    const auto found = batched(t);
    return found->value.movedim(found->dim, dim);
  }
  auto size = t.sym_sizes().vec();
  size.insert(size.begin() + dim, size_);
  return t.unsqueeze(dim).expand_symint(size);
}

Tensor Batch::wrap(const Tensor& t, int64_t dim) const {
  return older_ ? at::makeBatched(t, {at::BatchDim(level_, dim)}) : at::functorch::makeBatched(t, dim, level_);
}

Tensor unfold_dim(const Tensor& t, int64_t dim, std::initializer_list<c10::SymInt> sizes) {
  auto size = t.sym_sizes().vec();
  size.erase(size.begin() + dim);
  size.insert(size.begin() + dim, sizes.begin(), sizes.end());
  return t.reshape_symint(size);
}

}  // namespace gossamer
