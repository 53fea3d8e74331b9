// SPDX-License-Identifier: BSD-3-Clause
// A sparse matrix: a frozen pattern and a tensor of values on it. Only the values are differentiated.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include <gossamer/pattern.h>

namespace at::indexing {
struct TensorIndex;  // ATen/TensorIndexing.h takes 4 s to compile; whoever names a Slice has included it, or torch.h
}

namespace gossamer {

using at::indexing::TensorIndex;

// values: (nnz,), or (nnz, H) for H matrices on one pattern.
class SparseMatrix {
 public:
  SparseMatrix();  // 0 x 0, for a member that gets its matrix later
  SparseMatrix(Pattern pattern, Tensor values);
  SparseMatrix(Tensor indptr, Tensor indices, Tensor values, Shape shape, bool check = true);

  const Pattern& pattern() const { return transposed_ ? transposed_pattern() : pattern_; }
  operator const Pattern&() const { return pattern(); }  // A function of a pattern takes a matrix too, as in Python.
  const Tensor& values() const { return transposed_ ? transposed_values() : values_; }
  const Tensor& indptr() const { return pattern().indptr(); }
  const Tensor& indices() const { return pattern().indices(); }
  const Shape& shape() const { return transposed_ ? transposed_shape() : pattern_.shape(); }
  int64_t rows() const { return shape()[0]; }
  int64_t cols() const { return shape()[1]; }
  int64_t nnz() const { return pattern_.nnz(); }
  at::ScalarType dtype() const { return values_.scalar_type(); }
  at::Device device() const { return values_.device(); }

  bool requires_grad() const { return values().requires_grad(); }
  SparseMatrix& requires_grad_(bool on = true) &;
  SparseMatrix requires_grad_(bool on = true) &&;  // of a temporary: itself, not a reference to what is gone
  std::optional<SparseMatrix> grad() const;        // on the same pattern; empty before a backward
  SparseMatrix detach() const { return with_values(values().detach()); }
  SparseMatrix clone() const { return with_values(values().clone()); }

  SparseMatrix with_values(Tensor values) const { return SparseMatrix(pattern(), std::move(values)); }
  // Aᵀ costs nothing: products and solves with it take A and transpose it. Its own pattern is built, once, and its
  // values are gathered, differentiably, when somebody asks for them. Until then it sees changes of A's values in
  // place.
  SparseMatrix T() const;
  // Of a transpose whose values nobody has asked for: what it is the transpose of.
  std::optional<SparseMatrix> original() const;
  SparseMatrix to(at::Device device) const;
  SparseMatrix to(at::ScalarType dtype) const { return with_values(values().to(dtype)); }
  SparseMatrix to(at::Device device, at::ScalarType dtype) const { return to(device).to(dtype); }
  SparseMatrix with_index_type(at::ScalarType type) const;  // int32 or int64; the values are shared
  Tensor to_dense() const;
  Tensor to_torch() const;        // a torch CSR tensor that shares the arrays
  SparseMatrix coalesce() const;  // parallel entries added up; itself if there are none
  std::string repr() const;

  Tensor matmul(const Tensor& X) const;              // A X
  Tensor rmatmul(const Tensor& X) const;             // X A
  SparseMatrix matmul(const SparseMatrix& B) const;  // A B

  // Functions of the values that give 0 for 0, so that the pattern stays.
  SparseMatrix abs() const;
  SparseMatrix conj() const;
  SparseMatrix real() const;
  SparseMatrix imag() const;                       // of real values, zeros
  SparseMatrix pow(double p) const;                // p > 0
  SparseMatrix scale_rows(const Tensor& d) const;  // diag(d) A; d (rows,), or (rows, H)
  SparseMatrix scale_cols(const Tensor& d) const;  // A diag(d); d (cols,), or (cols, H)
  SparseMatrix row_softmax() const;                // over the stored entries of each row
  SparseMatrix map(const std::function<Tensor(const Tensor&)>& f) const;

  // Of each column (dim 0), of each row (dim 1), of all of it (no dim); with heads, one a head.
  Tensor sum(std::optional<int64_t> dim = {}) const;
  Tensor mean(std::optional<int64_t> dim = {}) const;
  Tensor norm() const;  // Frobenius
  // Entries that are not stored count as zeros; argmax is a row (dim 0), a column (dim 1) or row · cols + column.
  Tensor amax(std::optional<int64_t> dim = {}) const;
  Tensor amin(std::optional<int64_t> dim = {}) const;
  Tensor argmax(std::optional<int64_t> dim = {}) const;
  Tensor argmin(std::optional<int64_t> dim = {}) const;
  Tensor count_nonzero(std::optional<int64_t> dim = {}) const;
  // Of the stored entries alone; 0 where there is none, −∞ for logsumexp.
  Tensor smax(std::optional<int64_t> dim = {}) const;
  Tensor smin(std::optional<int64_t> dim = {}) const;
  Tensor smean(std::optional<int64_t> dim = {}) const;
  Tensor logsumexp(std::optional<int64_t> dim = {}) const;

  // Entries of the matrix; one that is not stored is 0. Indices may be negative, unsorted, repeated, or masks.
  Tensor diagonal(int64_t k = 0) const;                        // A[i, i + k]
  Tensor trace() const;                                        // Σ A[i, i]
  Tensor index(int64_t i, int64_t j) const;                    // A[i, j]
  Tensor index(std::initializer_list<int64_t> place) const;    // A.index({i, j}), as torch spells it
  Tensor index(const Tensor& rows, const Tensor& cols) const;  // A[rows[k], cols[k]], pair by pair
  // Everything else is a matrix, also of one row or one column. As torch spells it: integers, Slice (steps may be
  // negative), arrays, masks, "...", in any mix; A[rows] is A.index({rows}). Two arrays of which one has two dimensions
  // are broadcast, so that {rows.unsqueeze(1), cols} is every row by every column.
  SparseMatrix index(std::initializer_list<TensorIndex> key) const;  // A.index({Slice(0, 3), cols})
  SparseMatrix index(at::ArrayRef<TensorIndex> key) const;
  SparseMatrix index(const TensorIndex& rows) const;
  SparseMatrix index(const TensorIndex& rows, const TensorIndex& cols) const;
  SparseMatrix operator[](int64_t i) const;  // row i, 1 x cols
  SparseMatrix operator[](const TensorIndex& rows) const;
  // B[r, c] = A[rows[r], cols[c]]; none is all of the axis.
  SparseMatrix submatrix(const std::optional<Tensor>& rows, const std::optional<Tensor>& cols = {}) const;
  SparseMatrix with_diagonal(const Tensor& v,
                             int64_t k = 0) const;         // v, (length,) or one number, stored at A[i, i + k]
  SparseMatrix reshape(int64_t rows, int64_t cols) const;  // the same numbers, row by row; -1: what is left
  std::tuple<Tensor, Tensor> nonzero() const;              // rows and columns of the entries that are not zero
  SparseMatrix tril(int64_t k = 0) const;                  // the entries with j - i <= k
  SparseMatrix triu(int64_t k = 0) const;                  // the entries with j - i >= k

 private:
  struct Transposed;
  const Pattern& transposed_pattern() const;
  const Tensor& transposed_values() const;
  const Shape& transposed_shape() const;

  Pattern pattern_;
  Tensor values_;
  std::shared_ptr<Transposed> transposed_;  // if there is one, this is the transpose of (pattern_, values_)
};

std::ostream& operator<<(std::ostream& out, const SparseMatrix& A);  // repr()

SparseMatrix from_coo(const Tensor& rows, const Tensor& cols, const Tensor& values, Shape shape);
SparseMatrix from_dense(const Tensor& dense);
SparseMatrix from_torch(const Tensor& A);
// A[target, source] = value for each column (source, target) of edge_index: row i gathers from what points at i.
SparseMatrix from_edge_index(const Tensor& edge_index, std::optional<Tensor> values = {},
                             std::optional<int64_t> num_nodes = {});
SparseMatrix eye(int64_t rows, std::optional<int64_t> cols = {}, at::TensorOptions options = {});
SparseMatrix eye(int64_t n, at::TensorOptions options);
SparseMatrix poisson(at::IntArrayRef grid, at::TensorOptions options = {});
// round(density · rows · cols) distinct entries at uniformly random places, values uniform on [0, 1).
SparseMatrix random(int64_t rows, int64_t cols, double density = 0.01, at::TensorOptions options = {});
SparseMatrix random(int64_t rows, int64_t cols, double density, at::Generator generator,
                    at::TensorOptions options = {});
SparseMatrix random(Shape shape, double density = 0.01, std::optional<at::Generator> generator = {},
                    at::TensorOptions options = {});

namespace ops {

// The ways in and out; each way in gives {indptr, indices, values}, differentiable in the values. See construct.cpp.
using Parts = std::tuple<Tensor, Tensor, Tensor>;
Parts from_coo(const Tensor& rows, const Tensor& cols, const Tensor& values, at::IntArrayRef shape);
Parts from_edge_index(const Tensor& edge_index, const std::optional<Tensor>& values, std::optional<int64_t> num_nodes);
Parts eye(int64_t rows, int64_t cols, at::ScalarType dtype, at::Device device);
Parts from_dense(const Tensor& dense);
Parts from_torch(const Tensor& A);
Parts poisson(at::IntArrayRef grid, at::ScalarType dtype, at::Device device);
Parts random(at::IntArrayRef shape, int64_t nnz, std::optional<at::Generator> generator, at::ScalarType dtype);
// Unless `simple`, entries at one place are added.
Tensor to_dense(const Tensor& indptr, const Tensor& indices, const Tensor& values, at::IntArrayRef shape,
                bool simple = true);

}  // namespace ops

}  // namespace gossamer
