// SPDX-License-Identifier: BSD-3-Clause
// The frozen structure of a sparse matrix, and what is derived from it once and kept.
#pragma once
#include <any>
#include <array>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gossamer {

using at::Tensor;
using at::TensorList;
using c10::SymIntArrayRef;
using Shape = std::array<int64_t, 2>;  // {rows, cols}

// Whether a row may hold a column several times, as a graph with parallel edges does. `unknown` is found out, by a pass
// over the entries, when it is first asked for.
enum class Entries { unique, parallel, unknown };

// indptr (rows + 1) and indices (nnz), sorted in each row and, but for the pattern of a graph with parallel edges,
// unique; int32 or int64. Copies share everything.
class Pattern {
 public:
  Pattern();  // 0 x 0, for a member that gets its pattern later
  // Throws unless the tensors are a well-formed pattern; check = false trusts them.
  Pattern(Tensor indptr, Tensor indices, Shape shape, bool check = true, Entries entries = Entries::unique);

  // From tensors as an op receives them: {indptr, indices}, or these and the transpose's three. They are trusted.
  static Pattern adopt(at::TensorList tensors, Shape shape, Entries entries = Entries::unique);

  const Tensor& indptr() const;
  const Tensor& indices() const;
  const Shape& shape() const;
  int64_t rows() const { return shape()[0]; }
  int64_t cols() const { return shape()[1]; }
  int64_t nnz() const { return indices().size(0); }
  at::Device device() const { return indices().device(); }
  at::ScalarType index_type() const { return indices().scalar_type(); }

  // Each entry of the matrix is stored once. Ops that need this refuse other patterns in the name of `op`;
  // SparseMatrix's coalesce() adds parallel entries up.
  bool simple() const;
  void check_simple(const char* op) const;
  Entries entries() const;  // what is known so far, for patterns that are made from this one

  Tensor row_indices() const;                            // the row of each entry, int64
  Pattern T() const;                                     // made once and kept; T().T() is this
  Tensor transpose_perm() const;                         // entry q of T() is entry transpose_perm()[q] of this
  std::tuple<Tensor, Tensor, Tensor> transpose() const;  // indptr and indices of T(), and transpose_perm()
  std::vector<Tensor> levels(bool upper) const;          // {level_ptr, order} of a triangle, kept; see linalg.h
  std::vector<Tensor> levels_at_hand(bool upper) const;  // the same if they are kept, {} if not
  Tensor analysis() const;                               // what ops::factorize can know from the pattern alone, kept
  Pattern to(at::Device device) const;
  Pattern with_index_type(at::ScalarType type) const;  // int32 or int64; itself if it has it
  Pattern widened() const;  // with int64 indices; made once and kept, and this itself if it has them

  // Derived together with another pattern, once, and kept here for as long as the other one lives.
  Pattern product(const Pattern& other) const;  // the pattern of A B
  struct Merged;
  Merged merge(const Pattern& other, bool intersect = false) const;  // the union, or the intersection
  // The union and the values of A + B on it, for two patterns that have not met: in one pass. The maps into the union
  // are left to a later `merge`, unless a derivative will need them.
  std::pair<Pattern, Tensor> first_sum(const Tensor& a, const Pattern& other, const Tensor& b) const;

  // As ops take it: with the transpose if it is at hand or `with_transpose` asks for it.
  std::vector<Tensor> tensors(bool with_transpose = false) const;
  // The same for a call whose vjp multiplies by the transpose if one of these operands is differentiated.
  std::vector<Tensor> tensors_for(std::initializer_list<Tensor> operands, bool with_transpose = false) const;
  // The same list and, from the second call on, the runs of rows that a grid or a band has: for products with vectors.
  std::vector<Tensor> with_runs(std::vector<Tensor> tensors) const;
  std::array<c10::SymInt, 2> sym_shape() const { return {rows(), cols()}; }

  // What `make` gives, made once and kept with the pattern under `key`; with another pattern, for as long as that one
  // lives.
  template <class T>
  T keep(const std::string& key, const std::function<T()>& make) const {
    return std::any_cast<T>(kept(key, nullptr, [&make]() -> std::any { return make(); }));
  }
  template <class T>
  T keep(const std::string& key, const std::function<T()>& make, const Pattern& other) const {
    return std::any_cast<T>(kept(key, other.state_, [&make]() -> std::any { return make(); }));
  }

  bool keeps(const std::string& key, const Pattern& other) const;  // whether it was made for this pair before

  bool same_as(const Pattern& other) const { return state_ == other.state_; }
  bool equals(const Pattern& other) const;      // entry for entry; found out once for each other pattern
  bool operator==(const Pattern& other) const;  // the same entries in the same shape; index types may differ
  std::string repr() const;                     // "Pattern(3 x 4, nnz=5, int32, cpu)"

 private:
  struct State;
  explicit Pattern(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::optional<Pattern> unless_this(const Tensor& indptr, const Tensor& indices) const;
  std::optional<Pattern> union_of(const Pattern& other, const Tensor& indptr, const Tensor& indices) const;
  std::any kept(const std::string& name, const std::shared_ptr<State>& other,
                const std::function<std::any()>& make) const;

  std::shared_ptr<State> state_;
};

// With where the entries of A and B are in the union, or where the entries of the intersection are in A and B.
struct Pattern::Merged {
  Pattern pattern;
  Tensor at_A, at_B;
};
using Merged = Pattern::Merged;

std::ostream& operator<<(std::ostream& out, const Pattern& P);  // repr()

// Namespace ops holds, here and in the other headers, the ops as the dispatcher knows them (torch.ops.gossamer.*):
// plain tensors in, plain tensors out, so that they trace, batch and differentiate like torch's own. SparseMatrix is
// the comfortable way to call them. A pattern travels as a list of tensors: {indptr, indices} or, with its transpose,
// {indptr, indices, indptr_t, indices_t, perm_t}; a product with vectors adds the runs of each (see `runs`). `shape` is
// {rows, cols}.
namespace ops {

// The transpose of a pattern: {indptr_t, indices_t, perm_t}, entry q of Aᵀ being entry perm_t[q] of A.
std::tuple<Tensor, Tensor, Tensor> transpose(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape);

// The first rows of runs of rows that have their entries at the same distances from the diagonal, and the number of
// rows at the end; empty if they are too short to be of use, and on a device. perm: that of a transpose.
// kernels/runs.h.
Tensor runs(const Tensor& indptr, const Tensor& indices, const std::optional<Tensor>& perm, SymIntArrayRef shape);

// {indptr, indices, slot} of the distinct (rows[k], cols[k]); triplet k belongs to entry slot[k]. int32 where it fits.
std::tuple<Tensor, Tensor, Tensor> coo(const Tensor& rows, const Tensor& cols, at::IntArrayRef shape);

// Throws ValueError unless indptr and indices are a well-formed pattern of this shape. Unless `simple`, a row may hold
// a column several times.
void check_pattern(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape, bool simple = true);
bool has_parallel_entries(const Tensor& indptr, const Tensor& indices);

Tensor row_indices(const Tensor& indptr, const Tensor& indices);  // the row of each entry, int64

}  // namespace ops

}  // namespace gossamer
