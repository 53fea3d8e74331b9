// SPDX-License-Identifier: BSD-3-Clause
// The frozen structure of a sparse matrix, and what is derived from it once and kept.
#pragma once
#include <any>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gossamer/ops.h>

namespace gossamer {

using at::Tensor;
using Shape = std::array<int64_t, 2>;  // {rows, cols}

// indptr (rows + 1) and indices (nnz), sorted and unique in each row; int32 or int64. Copies share everything.
class Pattern {
 public:
  // Throws unless the tensors are a well-formed pattern; check = false trusts them.
  Pattern(Tensor indptr, Tensor indices, Shape shape, bool check = true);

  // From tensors as an op receives them: {indptr, indices}, or these and the transpose's three. They are trusted.
  static Pattern adopt(at::TensorList tensors, Shape shape);

  const Tensor& indptr() const;
  const Tensor& indices() const;
  const Shape& shape() const;
  int64_t rows() const { return shape()[0]; }
  int64_t cols() const { return shape()[1]; }
  int64_t nnz() const { return indices().size(0); }
  at::Device device() const { return indices().device(); }

  Tensor row_indices() const;                    // the row of each entry, int64
  Pattern T() const;                             // made once and kept; T().T() is this
  Tensor transpose_perm() const;                 // entry q of T() is entry transpose_perm()[q] of this
  std::vector<Tensor> levels(bool upper) const;  // {level_ptr, order} of a triangle, kept
  Pattern to(at::Device device) const;

  // Derived together with another pattern, once, and kept here for as long as the other one lives.
  Pattern product(const Pattern& other) const;  // the pattern of A B
  struct Merged;
  Merged merge(const Pattern& other, bool intersect = false) const;  // the union, or the intersection

  // As ops take it: with the transpose if it is at hand or `with_transpose` asks for it.
  std::vector<Tensor> tensors(bool with_transpose = false) const;
  std::array<c10::SymInt, 2> sym_shape() const { return {rows(), cols()}; }

  // What `make` gives, made once and kept with the pattern under `key`.
  template <class T>
  T keep(const std::string& key, const std::function<T()>& make) const {
    return std::any_cast<T>(kept(key, nullptr, [&make]() -> std::any { return make(); }));
  }

  bool same_as(const Pattern& other) const { return state_ == other.state_; }
  bool equals(const Pattern& other) const;  // entry for entry; found out once for each other pattern

 private:
  struct State;
  explicit Pattern(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::any kept(const std::string& name, const std::shared_ptr<State>& other,
                const std::function<std::any()>& make) const;

  std::shared_ptr<State> state_;
};

// With where the entries of A and B are in the union, or where the entries of the intersection are in A and B.
struct Pattern::Merged {
  Pattern pattern;
  Tensor at_A, at_B;
};

}  // namespace gossamer
