// SPDX-License-Identifier: BSD-3-Clause
// Parts of patterns on a device, and patterns put together from others. What the loops of the host's kernels write one
// after the other is numbered here: entry q of the result finds the row it is in by a search, and from there what it
// is.
#include <ATen/ATen.h>

#include "core/host.h"
#include "structure/device.h"
#include "structure/scans.h"

namespace gossamer::device_patterns {
namespace {

// Positions along an axis, from its end where they are negative. One that is out of range becomes 0, so that nothing is
// read outside before the host has looked.
struct Positions {
  Tensor at, fit;

  Positions(const Tensor& given, int64_t size, at::Device device) {
    const Tensor k = given.to(device, at::kLong), wrapped = at::where(k.lt(0), k + size, k),
                 valid = inside(wrapped, size);
    at = wrapped.masked_fill(valid.logical_not(), 0);
    fit = valid.all();
  }
};

// Entry p of A becomes copies[p + 1] - copies[p] entries of the result, in the columns targets[first[p]] and those
// that follow it.
struct Copies {
  Tensor copies, first, targets;

  Copies(const Tensor& indices, const Tensor& chosen) {
    const auto [sorted, order] = chosen.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
    const Tensor columns = indices.to(at::kLong);
    first = at::searchsorted(sorted, columns);
    copies = running(at::searchsorted(sorted, columns, /*out_int32=*/false, /*right=*/true) - first);
    targets = order;
  }
};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> submatrix(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape,
                                             const std::optional<Tensor>& rows, const std::optional<Tensor>& cols) {
  const KeptResults kept;
  const auto device = indptr.device();
  const auto integers = indptr.options().dtype(at::kLong);
  const Positions r(rows ? *rows : at::arange(shape[0], integers), shape[0], device);
  Tensor fit = r.fit, copies = at::arange(indices.size(0) + 1, integers);
  std::optional<Copies> columns;
  if (cols) {
    const Positions c(*cols, shape[1], device);
    fit = fit.logical_and(c.fit);
    columns.emplace(indices, c.at);
    copies = columns->copies;
  }
  const Tensor before_row = copies.index_select(0, indptr.to(at::kLong));
  const Tensor begin = before_row.index_select(0, r.at);
  const Tensor starts = running(before_row.index_select(0, r.at + 1) - begin);
  const int64_t nnz = at::where(fit, starts.select(0, -1), -1).item<int64_t>();
  if (nnz < 0) return {};

  const int64_t count = r.at.size(0), width = cols ? cols->size(0) : shape[1];
  const auto type = index_type(indptr.scalar_type() == at::kLong, {nnz, count, width});
  const Tensor number = at::arange(nnz, integers), row = run_of(starts, number);
  const Tensor copy = number - starts.index_select(0, row) + begin.index_select(0, row);
  if (!cols) return {starts.to(type), indices.index_select(0, copy).to(type), copy.to(type)};
  const Tensor entry = run_of(copies, copy);
  const Tensor nth = copy - copies.index_select(0, entry);
  const Tensor column = columns->targets.index_select(0, columns->first.index_select(0, entry) + nth);
  const auto [keys, order] = (row * width + column).sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  return {starts.to(type), column.index_select(0, order).to(type), entry.index_select(0, order).to(type)};
}

std::tuple<Tensor, Tensor> entries(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape,
                                   const Tensor& rows, const Tensor& cols) {
  const KeptResults kept;
  const Positions r(rows, shape[0], indptr.device()), c(cols, shape[1], indptr.device());
  const Tensor wanted = r.at * shape[1] + c.at, keys = keys_of(indptr, indices, shape[1]);
  const Tensor rank = at::searchsorted(keys, wanted), stored = among(wanted, keys, rank);
  const int64_t found = at::where(r.fit.logical_and(c.fit), stored.sum(), -1).item<int64_t>();
  if (found < 0) return {};
  const Tensor which = places(stored, found);
  return {which, rank.index_select(0, which)};
}

// Row i₁ m₂ + i₂ has len(i₁) len(i₂) entries; the w-th of them is A's w / len(i₂)-th of row i₁ times B's w mod
// len(i₂)-th of row i₂.
std::tuple<Tensor, Tensor, Tensor, Tensor> kron(TensorList A, TensorList B, int64_t cols_B, at::ScalarType type) {
  const KeptResults kept;
  const Tensor starts_A = A[0].to(at::kLong), starts_B = B[0].to(at::kLong), lengths_B = starts_B.diff();
  const Tensor starts = running((starts_A.diff().unsqueeze(1) * lengths_B).flatten());
  const Tensor number = at::arange(A[1].size(0) * B[1].size(0), starts.options()), row = run_of(starts, number);
  const Tensor w = number - starts.index_select(0, row);
  const int64_t rows_B = std::max<int64_t>(lengths_B.size(0), 1);
  const Tensor row_B = row.remainder(rows_B), length = lengths_B.index_select(0, row_B);
  const Tensor from_A = starts_A.index_select(0, row.floor_divide(rows_B)) + w.floor_divide(length);
  const Tensor from_B = starts_B.index_select(0, row_B) + w.remainder(length);
  const Tensor column = A[1].index_select(0, from_A).to(at::kLong) * cols_B + B[1].index_select(0, from_B);
  return {starts.to(type), column.to(type), from_A.to(type), from_B.to(type)};
}

// The entries of all blocks, end to end, sorted by their rows: within a row they stay in the order of the blocks.
std::tuple<Tensor, Tensor, Tensor> blocks(TensorList indptrs, TensorList indices, at::IntArrayRef at, int64_t rows,
                                          at::ScalarType type) {
  const KeptResults kept;
  std::vector<Tensor> row, column;
  for (size_t k = 0; k < indptrs.size(); ++k) {
    row.push_back(ops::row_indices(indptrs[k], indices[k]) + at[2 * k]);
    column.push_back(indices[k].to(at::kLong) + at[2 * k + 1]);
  }
  const auto [sorted, order] = at::cat(row).sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor starts = at::searchsorted(sorted, at::arange(rows + 1, sorted.options()));
  return {starts.to(type), at::cat(column).index_select(0, order).to(type), order.to(type)};
}

}  // namespace gossamer::device_patterns
