// SPDX-License-Identifier: BSD-3-Clause
// The ops as the dispatcher knows them (torch.ops.gossamer.*): plain tensors in, plain tensors out, so that they trace,
// batch and differentiate like torch's own. SparseMatrix is the comfortable way to call them.
//
// A pattern travels as a list of tensors: {indptr, indices} or, with its transpose,
// {indptr, indices, indptr_t, indices_t, perm_t}. `shape` is {rows, cols}.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <tuple>

namespace gossamer::ops {

using at::Tensor;
using at::TensorList;
using c10::SymIntArrayRef;

// Y = A X, or Aᵀ X if t. values (nnz,): X (n,) or (n, d). values (nnz, H): X (n, H) or (n, H, d), one matrix a head.
Tensor spmm(TensorList pattern, const Tensor& values, const Tensor& X, SymIntArrayRef shape, bool t);

// (U Vᵀ) on the pattern. U (rows,), V (cols,) or U (rows, d), V (cols, d): values (nnz,).
// U (rows, H, d), V (cols, H, d): values (nnz, H).
Tensor sddmm(TensorList pattern, const Tensor& U, const Tensor& V, SymIntArrayRef shape);

// x with L x = b, or Lᵀ x = b if t, reading one triangle of L: solve_triangular in linalg.h. `levels`: as from
// levels(), or {} for rows one after the other. values (nnz,) or (nnz, H); b as X of spmm.
Tensor solve_triangular(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
                        TensorList levels, bool upper, bool unit_diagonal, bool t);

// The analysis of a square pattern for `factorize`, and the factors of matrices on it for `factor_solve`: handles,
// int64 tensors that own what they stand for. kind: "auto", "lu" or "cholesky"; engine: "auto" or a name. A factor a
// head.
Tensor analyze(TensorList pattern, SymIntArrayRef shape);
Tensor factorize(const Tensor& analysis, const Tensor& values, c10::string_view kind, c10::string_view engine);
std::string factor_engine(const Tensor& factor);

// x with A x = b, or Aᵀ x = b if t, from the factor of A = (pattern, values). b as X of spmm.
Tensor factor_solve(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                    SymIntArrayRef shape, bool t);

// log|det A|, its gradient A⁻ᵀ on the pattern (n solves), and the sign of det A, which is not differentiated.
Tensor factor_logdet(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape);
Tensor factor_inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape);
Tensor factor_sign(const Tensor& factor, const Tensor& values);

// Rows of a triangle that can be solved at once: {level_ptr (n + 1), order (n)}, see triangular.h.
std::tuple<Tensor, Tensor> levels(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, bool upper);

// values on the triangle, 0 off it (and on its diagonal if that is unit).
Tensor keep_triangle(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper, bool unit_diagonal);

// The transpose of a pattern: {indptr_t, indices_t, perm_t}, entry q of Aᵀ being entry perm_t[q] of A.
std::tuple<Tensor, Tensor, Tensor> transpose(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape);

// {indptr, indices, slot} of the distinct (rows[k], cols[k]); triplet k belongs to entry slot[k]. int32 where it fits.
std::tuple<Tensor, Tensor, Tensor> coo(const Tensor& rows, const Tensor& cols, at::IntArrayRef shape);

// Throws ValueError unless indptr and indices are a well-formed pattern of this shape. Unless `simple`, a row may hold
// a column several times.
void check_pattern(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape, bool simple = true);
bool has_parallel_entries(const Tensor& indptr, const Tensor& indices);

// The ways in and out; each way in gives {indptr, indices, values}, differentiable in the values. See construct.cpp.
using Parts = std::tuple<Tensor, Tensor, Tensor>;
Parts from_coo(const Tensor& rows, const Tensor& cols, const Tensor& values, at::IntArrayRef shape);
Parts from_edge_index(const Tensor& edge_index, const std::optional<Tensor>& values, std::optional<int64_t> num_nodes);
Parts eye(int64_t rows, int64_t cols, at::ScalarType dtype, at::Device device);
Parts from_dense(const Tensor& dense);
Parts from_torch(const Tensor& A);
Parts poisson(at::IntArrayRef grid, at::ScalarType dtype, at::Device device);
Parts random(at::IntArrayRef shape, int64_t nnz, std::optional<at::Generator> generator, at::ScalarType dtype);
Tensor row_indices(const Tensor& indptr, const Tensor& indices);
// Unless `simple`, entries at one place are added.
Tensor to_dense(const Tensor& indptr, const Tensor& indices, const Tensor& values, at::IntArrayRef shape,
                bool simple = true);

// What this build is and found, one "name: value" line each.
std::string show_config();

}  // namespace gossamer::ops
