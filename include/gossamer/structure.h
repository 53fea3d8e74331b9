// SPDX-License-Identifier: BSD-3-Clause
// Matrices made of the entries of others. The new pattern and the map of positions into the old values are computed on
// the host, once; the values follow by torch's own index_select and cat, so every derivative is torch's.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {

using Gathered = std::tuple<Tensor, Tensor, Tensor>;  // indptr, indices, positions: entry q was entry positions[q]

// The entries with low <= j - i <= high.
Gathered band(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, int64_t low, int64_t high);

// An index of one axis (integers from -size, or a mask of `size` booleans) as int64 in 0 … size - 1, on the host.
Tensor axis_index(const Tensor& index, int64_t size, bool columns);

// B[r, c] = A[rows[r], cols[c]]; all of an axis where there is no index.
Gathered submatrix(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, const std::optional<Tensor>& rows,
                   const std::optional<Tensor>& cols);

// A[rows[k], cols[k]] is entry positions[q] for k = which[q]; places that are not stored are left out. int64.
std::tuple<Tensor, Tensor> entries(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape,
                                   const Tensor& rows, const Tensor& cols);

// (size,) or (size, H): values[positions[q]] at which[q], zero elsewhere.
Tensor place_entries(const Tensor& values, const Tensor& which, const Tensor& positions, int64_t size);

// indptr, indices, from_A, from_B: entry q is A's from_A[q] times B's from_B[q].
std::tuple<Tensor, Tensor, Tensor, Tensor> kron_pattern(TensorList A, SymIntArrayRef shape_A, TensorList B,
                                                        SymIntArrayRef shape_B);

// Block k, with indptrs[k] and indices[k], at (at[2k], at[2k + 1]) of a matrix of this shape.
Gathered blocks(TensorList indptrs, TensorList indices, at::IntArrayRef at, at::IntArrayRef shape);

// With their values: {indptr, indices, values}, differentiable in what flows in.
Parts diag(const Tensor& v, int64_t k);
Parts kron(TensorList A, const Tensor& values_A, SymIntArrayRef shape_A, TensorList B, const Tensor& values_B,
           SymIntArrayRef shape_B);
Parts stack(TensorList indptrs, TensorList indices, TensorList values, at::IntArrayRef shapes, bool below, bool beside);

}  // namespace ops

SparseMatrix diag(const Tensor& v, int64_t k = 0);  // v on diagonal k of a square matrix
SparseMatrix kron(const SparseMatrix& A, const SparseMatrix& B);
SparseMatrix vstack(at::ArrayRef<SparseMatrix> blocks);
SparseMatrix hstack(at::ArrayRef<SparseMatrix> blocks);
SparseMatrix block_diag(at::ArrayRef<SparseMatrix> blocks);

}  // namespace gossamer
