// SPDX-License-Identifier: BSD-3-Clause
// Ways into and out of CSR, written in torch's own differentiable functions: what flows in as values flows back as
// gradients. Each returns {indptr, indices, values}. Composite ops: both front ends call the same code.
#include <ATen/ATen.h>
#include <gossamer/sparse_matrix.h>

#include "core/csr.h"
#include "core/op.h"

namespace gossamer {

using ops::Parts;

// A[rows[k], cols[k]] += values[k].
Parts ops::from_coo(const Tensor& rows, const Tensor& cols, const Tensor& values, at::IntArrayRef shape) {
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.dim() <= 2 && values.sym_size(0) == rows.sym_numel(),
                    "from_coo: values has shape ", shape_text(values), " but there are ", rows.sym_numel(), " rows");
  TORCH_CHECK_VALUE(values.device() == rows.device() && values.device() == cols.device(), "from_coo: rows are on ",
                    rows.device(), ", cols on ", cols.device(), ", values on ", values.device());
  const auto [indptr, indices, slot] = coo(rows, cols, shape);
  auto size = values.sym_sizes().vec();
  size[0] = indices.sym_size(0);
  return {indptr, indices, at::zeros_symint(size, values.options()).index_add(0, slot, values)};
}

// A[target, source] = value for each column (source, target): row i gathers from what points at i.
Parts ops::from_edge_index(const Tensor& edge_index, const std::optional<Tensor>& values,
                           std::optional<int64_t> num_nodes) {
  TORCH_CHECK_VALUE(edge_index.dim() == 2 && edge_index.size(0) == 2,
                    "from_edge_index: edge_index must be (2, E), not ", shape_text(edge_index));
  const int64_t n = num_nodes ? *num_nodes : edge_index.numel() ? edge_index.max().item<int64_t>() + 1 : 0;
  const auto value = values ? *values : at::ones({edge_index.size(1)}, edge_index.options().dtype(at::kFloat));
  return from_coo(edge_index.select(0, 1), edge_index.select(0, 0), value, {n, n});
}

Parts ops::eye(int64_t rows, int64_t cols, at::ScalarType dtype, at::Device device) {
  TORCH_CHECK_VALUE(rows >= 0 && cols >= 0, "eye: sizes must not be negative, got ", rows, " x ", cols);
  const Tensor k = at::arange(std::min(rows, cols), at::TensorOptions().dtype(at::kLong).device(device));
  return from_coo(k, k, at::ones_like(k, at::dtype(dtype)), {rows, cols});
}

// The entries that are not zero; NaN is not zero.
Parts ops::from_dense(const Tensor& dense) {
  TORCH_CHECK_VALUE(dense.dim() == 2, "from_dense: wants a matrix, not shape ", shape_text(dense));
  const Tensor places = dense.detach().ne(0).nonzero();
  const Tensor rows = places.select(1, 0), cols = places.select(1, 1);
  const auto [indptr, indices, slot] =
      coo(rows, cols, dense.sizes());  // already in row-major order: slot is 0, 1, 2, …
  return {indptr, indices, dense.index({rows, cols})};
}

// torch's own matrices. COO is summed and sorted; CSC is the CSR of the transpose, turned round; widths are kept.
Parts ops::from_torch(const Tensor& A) {
  TORCH_CHECK_VALUE(A.dim() == 2, "from_torch: wants a matrix, not shape ", shape_text(A));
  switch (A.layout()) {
    case at::kStrided:
      return from_dense(A);
    case at::kSparseCsr:
      return {A.crow_indices(), A.col_indices(), A.values()};
    case at::kSparse: {
      const Tensor summed = A.coalesce(), places = summed.indices();
      const auto [indptr, indices, slot] = coo(places.select(0, 0), places.select(0, 1), A.sizes());
      return {indptr.to(at::kLong), indices.to(at::kLong), summed.values()};
    }
    case at::kSparseCsc: {
      const std::vector<SymInt> turned = {A.sym_size(1), A.sym_size(0)};
      const auto [indptr, indices, perm] = transpose(A.ccol_indices(), A.row_indices(), turned);
      return {indptr, indices, A.values().index_select(0, perm)};
    }
    default:
      TORCH_CHECK_TYPE(false, "from_torch: wants a strided, COO, CSR or CSC tensor, not ", A.layout());
  }
}

// The row of each entry, as int64: the last i with indptr[i] <= p. (A search, because its size is known to a tracer.)
Tensor ops::row_indices(const Tensor& indptr, const Tensor& indices) {
  const Tensor p = at::arange(indices.size(0), indices.options());
  return at::searchsorted(indptr, p, /*out_int32=*/false, /*right=*/true) - 1;
}

// values (nnz, …) → (rows, cols, …).
Tensor ops::to_dense(const Tensor& indptr, const Tensor& indices, const Tensor& values, at::IntArrayRef shape,
                     bool simple) {
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.size(0) == indices.size(0), "to_dense: values has shape ",
                    shape_text(values), " but the pattern has ", indices.size(0), " entries");
  TORCH_CHECK_VALUE(shape.size() == 2, "to_dense: shape must be (rows, cols), not ", shape.size(), " numbers");
  auto size = values.sizes().vec();
  size[0] = shape[0] * shape[1];
  const Tensor place = row_indices(indptr, indices) * shape[1] + indices;
  const Tensor zeros = at::zeros(size, values.options());
  const Tensor flat = simple ? zeros.index_copy(0, place, values) : zeros.index_add(0, place, values);
  size[0] = shape[1];
  size.insert(size.begin(), shape[0]);
  return flat.reshape(size);
}

// The finite-difference Laplacian on a grid with zero boundary: 2 per dimension on the diagonal, -1 to each neighbour.
Parts ops::poisson(at::IntArrayRef grid, at::ScalarType dtype, at::Device device) {
  int64_t n = 1;
  TORCH_CHECK_VALUE(!grid.empty(), "poisson: wants at least one dimension");
  for (const int64_t side : grid) {
    TORCH_CHECK_VALUE(side >= 0, "poisson: side ", side, " is negative");
    TORCH_CHECK_VALUE(side == 0 || n <= std::numeric_limits<int64_t>::max() / side, "poisson: the grid is too large");
    n *= side;
  }
  const Tensor point = at::arange(n, at::TensorOptions().dtype(at::kLong).device(device));
  std::vector<Tensor> rows = {point}, cols = {point};
  int64_t step = n;
  for (const int64_t side : grid) {
    step = side ? step / side : 0;  // distance between neighbours along this dimension, the last one being adjacent
    if (!side) break;
    const Tensor along = point.div(step, "floor").remainder(side), has_next = point.index({along.lt(side - 1)});
    rows.insert(rows.end(), {has_next, has_next + step});
    cols.insert(cols.end(), {has_next + step, has_next});
  }
  const Tensor row = at::cat(rows), col = at::cat(cols);
  const Tensor value = at::where(row.eq(col), 2.0 * static_cast<double>(grid.size()), -1.0).to(dtype);
  return from_coo(row, col, value, {n, n});
}

// nnz distinct places drawn uniformly, values uniform on [0, 1).
Parts ops::random(at::IntArrayRef shape, int64_t nnz, std::optional<at::Generator> generator, at::ScalarType dtype) {
  TORCH_CHECK_VALUE(shape.size() == 2 && shape[0] >= 0 && shape[1] >= 0, "random: shape must be two sizes, not ",
                    shape);
  TORCH_CHECK_VALUE(shape[1] == 0 || shape[0] <= std::numeric_limits<int64_t>::max() / shape[1],
                    "random: the shape is too large");
  const int64_t places = shape[0] * shape[1];
  TORCH_CHECK_VALUE(nnz >= 0 && nnz <= places, "random: ", nnz, " entries in a matrix of ", places, " places");
  const auto options = at::TensorOptions().dtype(at::kLong);
  Tensor chosen;
  if (2 * nnz >= places) {
    chosen = at::randperm(places, generator, options).narrow(0, 0, nnz);
  } else {  // draw, drop what was drawn before, until enough: a few rounds, each of O(nnz log nnz)
    chosen = at::empty({0}, options);
    while (chosen.numel() < nnz) {
      const Tensor more = at::randint(places, {nnz + nnz / 8 + 8}, generator, options);
      chosen = std::get<0>(at::_unique(at::cat({chosen, more})));
    }
    chosen = chosen.index_select(0, at::randperm(chosen.numel(), generator, options).narrow(0, 0, nnz));
  }
  const int64_t cols = std::max<int64_t>(shape[1], 1);
  return from_coo(chosen.div(cols, "floor"), chosen.remainder(cols), at::rand({nnz}, generator, at::dtype(dtype)),
                  shape);
}

static const std::string parts = " -> (Tensor indptr, Tensor indices, Tensor values)";
static const Composites composites =
    Composites()
        .def("from_coo(Tensor rows, Tensor cols, Tensor values, int[] shape)" + parts, ops::from_coo)
        .def("from_edge_index(Tensor edge_index, Tensor? values, int? num_nodes)" + parts, ops::from_edge_index)
        .def("eye(int rows, int cols, ScalarType dtype, Device device)" + parts, ops::eye)
        .def("from_dense(Tensor dense)" + parts, ops::from_dense)
        .def("from_torch(Tensor A)" + parts, ops::from_torch)
        .def("poisson(int[] grid, ScalarType dtype, Device device)" + parts, ops::poisson)
        .def("random(int[] shape, int nnz, Generator? generator, ScalarType dtype)" + parts, ops::random)
        .def("row_indices(Tensor indptr, Tensor indices) -> Tensor", ops::row_indices)
        .def("to_dense(Tensor indptr, Tensor indices, Tensor values, int[] shape, bool simple=True) -> Tensor",
             ops::to_dense);

}  // namespace gossamer
