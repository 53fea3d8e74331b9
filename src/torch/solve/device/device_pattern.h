// SPDX-License-Identifier: BSD-3-Clause
// Class: DevicePattern, what is kept of a square pattern on a device for the factorisations there.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <gossamer/products.h>
#include "solve/device/elimination.h"

namespace gossamer {

class DevicePattern {
 public:
  // {indptr, indices} and the transpose's three, as ops take them.
  DevicePattern(std::vector<Tensor> pattern, int64_t size);

  const int64_t n;
  const std::vector<Tensor> tensors;
  const Tensor rows, columns;  // of each entry, int64

  at::Device device() const { return columns.device(); }
  // A X, or Aᵀ X; values (nnz, H), X (n, H) or (n, H, k).
  Tensor product(const Tensor& values, const Tensor& X, bool t) const {
    return ops::spmm(tensors, values, X, {n, n}, t);
  }
  Tensor transposed(const Tensor& values) const {
    return values.index_select(0, tensors[4]);
  }  // for symmetric patterns

  // What the library of an engine keeps with the pattern, made when it is first asked for.
  template <class T>
  std::shared_ptr<T> kept_by_library() const {
    const std::lock_guard lock(mutex_);
    if (!of_library_) of_library_ = std::make_shared<T>();
    return std::static_pointer_cast<T>(of_library_);
  }

  // The elimination that served matrices of this kind last.
  std::shared_ptr<const Elimination> kept(FactorKind kind) const;
  void keep(FactorKind kind, std::shared_ptr<const Elimination> elimination) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<FactorKind, std::shared_ptr<const Elimination>> kept_;
  mutable std::shared_ptr<void> of_library_;
};

}  // namespace gossamer
