// SPDX-License-Identifier: BSD-3-Clause
// Numbers that sum up a matrix: of each column (dim 0), of each row (dim 1), of all of it (no dim). With heads, one a
// head.
#pragma once
#include <optional>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {

// The softmax of each row over its stored entries.
Tensor row_softmax(TensorList pattern, const Tensor& values, SymIntArrayRef shape);

// (rows, [H]) int64: the position of the largest number of each row, nnz where that is a zero that is not stored. With
// `stored`, only stored entries count: nnz for an empty row.
Tensor row_argmax(const Tensor& indptr, const Tensor& values, c10::SymInt cols, bool stored = false);

// Σ_i y[i] and √Σ |v|² (0 with gradient 0 where all v are 0), added up in one order: torch's own sum and norm of many
// numbers depend on the number of threads.
Tensor total(const Tensor& y);
Tensor norm(const Tensor& values);

// Σ_j A[i, j] as (rows, [H]); and the other way, d[i] (or d[j] if cols) at each entry (i, j).
Tensor row_sum(TensorList pattern, const Tensor& values, SymIntArrayRef shape);
Tensor spread(TensorList pattern, const Tensor& d, SymIntArrayRef shape, bool cols);

// diag(d) A, or A diag(d) if cols: d is (n,), or (n, H), one vector a head.
Tensor scale_axis(TensorList pattern, const Tensor& values, const Tensor& d, SymIntArrayRef shape, bool cols);

Tensor sum(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim);
Tensor mean(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim);

// The largest (or smallest) number, entries that are not stored being zeros; or that of the stored entries, 0 where
// there is none. And the place it first has: a row (dim 0), a column (dim 1), row · cols + column (no dim), int64.
Tensor extreme(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim,
               bool smallest, bool stored);
Tensor arg_extreme(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim,
                   bool smallest);

// Of the stored entries: their mean, 0 where there is none; log Σ exp, −∞ where there is none.
Tensor stored_mean(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim);
Tensor logsumexp(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim);

// |A - B| <= atol + rtol |B| everywhere, entries that are not stored being zeros.
bool allclose(TensorList A, const Tensor& values_A, TensorList B, const Tensor& values_B, at::IntArrayRef shape,
              double rtol, double atol, bool equal_nan);

}  // namespace ops

bool allclose(const SparseMatrix& A, const SparseMatrix& B, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);

}  // namespace gossamer
