// SPDX-License-Identifier: BSD-3-Clause
#include "gossamer/pattern.h"

#include <mutex>

namespace gossamer {

struct Pattern::State {
  Tensor indptr, indices;
  Shape shape;
  std::once_flag transposed;
  Tensor indptr_t, indices_t, perm_t;
  std::once_flag levelled[2];  // lower, upper
  std::vector<Tensor> levels[2];

  void transpose() {
    std::call_once(transposed, [this] {
      const std::array<c10::SymInt, 2> size = {shape[0], shape[1]};
      std::tie(indptr_t, indices_t, perm_t) = ops::transpose(indptr, indices, size);
    });
  }
};

Pattern::Pattern(Tensor indptr, Tensor indices, Shape shape, bool check) : state_(std::make_shared<State>()) {
  if (check) ops::check_pattern(indptr, indices, shape);
  state_->indptr = std::move(indptr);
  state_->indices = std::move(indices);
  state_->shape = shape;
}

const Tensor& Pattern::indptr() const {
  return state_->indptr;
}
const Tensor& Pattern::indices() const {
  return state_->indices;
}
const Shape& Pattern::shape() const {
  return state_->shape;
}

Tensor Pattern::row_indices() const {
  return ops::row_indices(indptr(), indices());
}

Pattern Pattern::T() const {
  state_->transpose();
  return Pattern(state_->indptr_t, state_->indices_t, {cols(), rows()}, /*check=*/false);
}

Tensor Pattern::transpose_perm() const {
  state_->transpose();
  return state_->perm_t;
}

std::vector<Tensor> Pattern::levels(bool upper) const {
  std::call_once(state_->levelled[upper], [&] {
    const auto [level_ptr, order] = ops::levels(indptr(), indices(), sym_shape(), upper);
    state_->levels[upper] = {level_ptr, order};
  });
  return state_->levels[upper];
}

Pattern Pattern::to(at::Device device) const {
  if (device == this->device()) return *this;
  return Pattern(indptr().to(device), indices().to(device), shape(), /*check=*/false);
}

std::vector<Tensor> Pattern::tensors(bool with_transpose) const {
  if (with_transpose) state_->transpose();
  if (!state_->perm_t.defined()) return {state_->indptr, state_->indices};
  return {state_->indptr, state_->indices, state_->indptr_t, state_->indices_t, state_->perm_t};
}

}  // namespace gossamer
