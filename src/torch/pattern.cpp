// SPDX-License-Identifier: BSD-3-Clause
#include "gossamer/pattern.h"

#include <map>
#include <mutex>

#include "gossamer/sparse_ops.h"

namespace gossamer {

struct Pattern::State {
  Tensor indptr, indices;
  Shape shape;
  std::once_flag transposed;
  Tensor indptr_t, indices_t, perm_t;
  std::recursive_mutex keeping;
  std::map<std::string, std::any> parts;  // of this pattern alone

  // By the other pattern's address; an entry counts only while that pattern lives.
  template <class T>
  using Kept = std::map<const State*, std::pair<std::weak_ptr<State>, T>>;
  std::mutex mutex;
  Kept<Pattern> products;
  Kept<Merged> unions, intersections;

  template <class T, class Derive>
  T keep(Kept<T>& all, const std::shared_ptr<State>& other, const Derive& derive) {
    const std::lock_guard<std::mutex> lock(mutex);
    std::erase_if(all, [](const auto& item) { return item.second.first.expired(); });
    auto found = all.find(other.get());
    if (found == all.end()) found = all.emplace(other.get(), std::pair{std::weak_ptr(other), derive()}).first;
    return found->second.second;
  }
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

Pattern Pattern::product(const Pattern& other) const {
  return state_->keep(state_->products, other.state_, [&] {
    const auto [indptr, indices] = ops::spgemm_pattern(tensors(), shape(), other.tensors(), other.shape());
    return Pattern(indptr, indices, {rows(), other.cols()}, /*check=*/false);
  });
}

Pattern::Merged Pattern::merge(const Pattern& other, bool intersect) const {
  return state_->keep(intersect ? state_->intersections : state_->unions, other.state_, [&] {
    const auto [indptr, indices, from_A, to_A, from_B, to_B] =
        ops::merge(tensors(), other.tensors(), shape(), intersect);
    return Merged{Pattern(indptr, indices, shape(), /*check=*/false), from_A, to_A, from_B, to_B};
  });
}

std::vector<Tensor> Pattern::tensors(bool with_transpose) const {
  if (with_transpose) state_->transpose();
  if (!state_->perm_t.defined()) return {state_->indptr, state_->indices};
  return {state_->indptr, state_->indices, state_->indptr_t, state_->indices_t, state_->perm_t};
}

const std::any& Pattern::kept(const std::string& key, const std::function<std::any()>& make) const {
  const std::lock_guard lock(state_->keeping);
  const auto found = state_->parts.find(key);
  return found != state_->parts.end() ? found->second : state_->parts.emplace(key, make()).first->second;
}

}  // namespace gossamer
