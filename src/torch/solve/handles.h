// SPDX-License-Identifier: BSD-3-Clause
// Handles: how objects travel through ops, which take and return tensors alone. A handle is an int64 tensor of numbers
// under which a registry keeps objects until the storage of the tensor is freed. Numbers are never used twice, so a
// number whose object is gone is an error and never a wild pointer. Each process counts from a random 62-bit number of
// its own, so a handle that was saved, sent or forked names nothing elsewhere, rather than somebody else's object.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>
#include <vector>

namespace gossamer {

template <class T>
using Objects = std::vector<std::shared_ptr<const T>>;

template <class T>
class Registry {
 public:
  static Registry& instance() {
    static auto* registry = new Registry;  // Never destroyed: handles may outlive the end of main.
    return *registry;
  }
  at::Tensor keep(Objects<T> objects, at::IntArrayRef size) {
    // Whatever fails from here on, the numbers that have an object by then are dropped: after the lock is.
    std::shared_ptr<std::vector<int64_t>> numbers(
        new std::vector<int64_t>(std::max<size_t>(objects.size(), 1), nothing),
        [this](std::vector<int64_t>* given) { drop(given); });
    name(objects, *numbers);
    return at::from_blob(
        numbers->data(), size, [numbers](void*) mutable { numbers.reset(); }, at::TensorOptions().dtype(at::kLong));
  }
  std::shared_ptr<const T> at(int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(number);
    TORCH_CHECK(found != objects_.end(),
                "a handle of a factor or a preconditioner: what it stood for is gone, or another process made it; keep "
                "the object that made it");
    return found->second;
  }

 private:
  using Map = std::unordered_map<int64_t, std::shared_ptr<const T>>;
  static constexpr int64_t nothing = -1;

  void name(Objects<T>& objects, std::vector<int64_t>& numbers) {
    const std::lock_guard lock(mutex_);
    if (process_ != getpid()) {
      std::random_device bits;
      next_ = static_cast<int64_t>(bits() & 0x3fffffff) << 32 | bits();
      process_ = getpid();
    }
    for (size_t k = 0; k < objects.size(); ++k) objects_[numbers[k] = next_++] = std::move(objects[k]);
  }
  // Called where a tensor is freed, when memory may be what is missing: it allocates nothing.
  void drop(std::vector<int64_t>* numbers) {
    for (const int64_t number : *numbers) {
      typename Map::node_type dropped;  // Declared before the lock, so that the object is freed after it.
      const std::lock_guard lock(mutex_);
      dropped = objects_.extract(number);
    }
    delete numbers;
  }
  std::mutex mutex_;
  Map objects_;
  int64_t next_ = 0;
  pid_t process_ = 0;
};

// A handle of shape `size` for as many objects.
template <class T>
at::Tensor handle_of(Objects<T> objects, at::IntArrayRef size) {
  return Registry<T>::instance().keep(std::move(objects), size);
}

// The objects of a handle, in the order of its elements.
template <class T>
Objects<T> objects_of(const at::Tensor& handle) {
  const at::Tensor numbers = handle.reshape(-1).contiguous();
  Objects<T> found;
  for (int64_t k = 0; k < numbers.numel(); ++k)
    found.push_back(Registry<T>::instance().at(numbers.const_data_ptr<int64_t>()[k]));
  return found;
}

// The object of a handle that has one.
template <class T>
std::shared_ptr<const T> object_of(const at::Tensor& handle) {
  return Registry<T>::instance().at(handle.item<int64_t>());
}

}  // namespace gossamer
