// SPDX-License-Identifier: BSD-3-Clause
// The frozen structure of a sparse matrix, and what is derived from it once and kept.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "ops.h"

namespace gossamer {

using at::Tensor;
using Shape = std::array<int64_t, 2>;  // {rows, cols}

// indptr (rows + 1) and indices (nnz), sorted and unique in each row; int32 or int64. Copies share everything.
class Pattern {
 public:
  // Throws unless the tensors are a well-formed pattern; check = false trusts them.
  Pattern(Tensor indptr, Tensor indices, Shape shape, bool check = true);

  const Tensor& indptr() const;
  const Tensor& indices() const;
  const Shape& shape() const;
  int64_t rows() const { return shape()[0]; }
  int64_t cols() const { return shape()[1]; }
  int64_t nnz() const { return indices().size(0); }
  at::Device device() const { return indices().device(); }

  Tensor row_indices() const;  // the row of each entry, int64
  Pattern T() const;
  Tensor transpose_perm() const;                 // entry q of T() is entry transpose_perm()[q] of this
  std::vector<Tensor> levels(bool upper) const;  // {level_ptr, order} of a triangle, kept
  Pattern to(at::Device device) const;

  // As ops take it: with the transpose if it is at hand or `with_transpose` asks for it.
  std::vector<Tensor> tensors(bool with_transpose = false) const;
  std::array<c10::SymInt, 2> sym_shape() const { return {rows(), cols()}; }

  bool same_as(const Pattern& other) const { return state_ == other.state_; }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gossamer
