// SPDX-License-Identifier: BSD-3-Clause
// Aᵀ without arrays of its own. With the first question for its values it becomes a matrix like any other.
#include <gossamer/sparse_matrix.h>

#include <ATen/ops/index_select.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <atomic>
#include <mutex>

namespace gossamer {

// Shared by all copies of a transpose, which therefore agree about its values.
struct SparseMatrix::Transposed {
  explicit Transposed(const Shape& of) : shape{of[1], of[0]} {}

  const Shape shape;
  const bool grad_enabled = c10::GradMode::is_enabled();  // as if the values had been gathered then
  std::once_flag pattern_asked, values_asked;
  std::atomic<bool> has_values = false;
  Pattern pattern;
  Tensor values;
};

SparseMatrix SparseMatrix::T() const {
  if (const auto A = original()) return *A;
  SparseMatrix T(pattern(), values());
  T.transposed_ = std::make_shared<Transposed>(shape());
  return T;
}

std::optional<SparseMatrix> SparseMatrix::original() const {
  if (!transposed_ || transposed_->has_values) return std::nullopt;
  return SparseMatrix(pattern_, values_);
}

const Pattern& SparseMatrix::transposed_pattern() const {
  std::call_once(transposed_->pattern_asked, [this] { transposed_->pattern = pattern_.T(); });
  return transposed_->pattern;
}

const Tensor& SparseMatrix::transposed_values() const {
  std::call_once(transposed_->values_asked, [this] {
    const c10::InferenceMode ordinary(false);
    const c10::AutoGradMode as_it_was(transposed_->grad_enabled);
    transposed_->values = values_.index_select(0, pattern_.transpose_perm());
    transposed_->has_values = true;
  });
  return transposed_->values;
}

const Shape& SparseMatrix::transposed_shape() const {
  return transposed_->shape;
}

}  // namespace gossamer
