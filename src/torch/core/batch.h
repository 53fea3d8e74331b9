// SPDX-License-Identifier: BSD-3-Clause
// vmap. A batching rule folds the batch into the heads or the columns of one ordinary call and unfolds the result:
// a batch of values on one pattern *is* a matrix with heads.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

namespace gossamer {

// The innermost batch among the inputs of an op. While it lives, ops see the tensors below that batch.
class Batch {
 public:
  Batch(const char* op, at::TensorList pattern, at::TensorList inputs);

  const c10::SymInt& size() const { return size_; }
  bool has(const at::Tensor& t) const;
  // t with its batch at dimension `dim`; without a batch it is repeated there.
  at::Tensor at(const at::Tensor& t, int64_t dim) const;
  // The other way: dimension `dim` of t is the batch.
  at::Tensor wrap(const at::Tensor& t, int64_t dim) const;

 private:
  int64_t level_ = -1;
  c10::SymInt size_ = 0;
  c10::impl::ExcludeDispatchKeyGuard below_{c10::DispatchKey::FuncTorchBatched};
};

// t with dimension `dim` split into `sizes`; no sizes: the dimension, of size 1, is dropped.
at::Tensor unfold_dim(const at::Tensor& t, int64_t dim, std::initializer_list<c10::SymInt> sizes);

}  // namespace gossamer
