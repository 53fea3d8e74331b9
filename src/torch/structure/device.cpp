// SPDX-License-Identifier: BSD-3-Clause
#include "structure/device.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/host.h"
#include "structure/scans.h"

namespace gossamer::device_patterns {
namespace {

// Where rows begin among ascending keys: the number of keys below i · cols, for i = 0 … rows.
Tensor starts_of(const Tensor& keys, int64_t rows, int64_t cols) {
  const Tensor first = at::arange(rows + 1, keys.options()) * std::max<int64_t>(cols, 1);
  return at::searchsorted(keys, first);
}

// The distinct ones of ascending keys; `distinct` is their number, and `slot` the one each key is.
struct Distinct {
  Tensor first, slot;

  explicit Distinct(const Tensor& sorted) {
    first = at::ones_like(sorted, at::kBool);
    if (sorted.size(0) > 1) first.slice(0, 1).copy_(sorted.slice(0, 1).ne(sorted.slice(0, 0, -1)));
    slot = first.to(at::kLong).cumsum(0) - 1;
  }
  Tensor keys(const Tensor& sorted, int64_t distinct) const {
    return at::empty({distinct}, sorted.options()).scatter(0, slot, sorted);
  }
};

// {indptr, indices} of ascending distinct keys.
std::tuple<Tensor, Tensor> pattern_of(const Tensor& keys, int64_t rows, int64_t cols, at::ScalarType type) {
  return {starts_of(keys, rows, cols).to(type), keys.remainder(std::max<int64_t>(cols, 1)).to(type)};
}

void check_countable(const char* op, int64_t nnz, at::ScalarType type) {
  TORCH_CHECK_VALUE(type == at::kLong || nnz <= std::numeric_limits<int32_t>::max(), op, ": the result has ", nnz,
                    " entries, more than int32 indices can count; use int64");
}

}  // namespace

bool has_keys(at::IntArrayRef shape) {
  return shape[1] == 0 || shape[0] < std::numeric_limits<int64_t>::max() / shape[1] - 1;
}

std::tuple<Tensor, Tensor, Tensor> transpose(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape) {
  const KeptResults kept;
  unpack("transpose", {indptr, indices}, shape, /*t=*/false);
  const auto type = indptr.scalar_type();
  const auto [columns, order] = indices.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor starts = at::searchsorted(columns, at::arange(shape[1].expect_int() + 1, indices.options()));
  return {starts.to(type), ops::row_indices(indptr, indices).index_select(0, order).to(type), order.to(type)};
}

std::tuple<Tensor, Tensor, Tensor> coo(const Tensor& rows, const Tensor& cols, at::IntArrayRef shape) {
  const Tensor r = rows.to(at::kLong), c = cols.to(at::kLong);
  const auto [sorted, order] = (r * shape[1] + c).sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Distinct distinct(sorted);
  const Tensor fits = inside(r, shape[0]).logical_and(inside(c, shape[1])).all();
  const int64_t nnz = at::where(fits, distinct.first.sum(), -1).item<int64_t>();
  if (nnz < 0) return {};
  const auto type = index_type(false, {shape[0], shape[1], nnz});
  const auto [indptr, indices] = pattern_of(distinct.keys(sorted, nnz), shape[0], shape[1], type);
  return {indptr, indices, at::empty_like(order).scatter(0, order, distinct.slot)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> merge(TensorList A, TensorList B, at::IntArrayRef shape, bool intersect) {
  const KeptResults kept;
  const int64_t n = shape[1], nnz_A = A[1].size(0), nnz_B = B[1].size(0);
  const auto type = A[0].scalar_type();
  const Tensor a = keys_of(A[0], A[1], n), b = keys_of(B[0], B[1], n);
  const Tensor rank_A = at::searchsorted(b, a), rank_B = at::searchsorted(a, b);
  const Tensor in_B = among(a, b, rank_A), in_A = among(b, a, rank_B), common = running(in_B);
  const int64_t both = in_B.sum().item<int64_t>();
  const Tensor shared = common.index_select(0, A[0].to(at::kLong));  // of both, before each row
  if (intersect) {
    const Tensor at_A = places(in_B, both);
    const Tensor at_B = rank_A.index_select(0, at_A);
    return {shared.to(type), A[1].index_select(0, at_A), at_A.to(type), at_B.to(type)};
  }
  const int64_t nnz = nnz_A + nnz_B - both;
  check_countable("spadd", nnz, type);
  const Tensor at_A = at::arange(nnz_A, a.options()) + rank_A - before(in_B);
  const Tensor at_B = at::arange(nnz_B, b.options()) + rank_B - before(in_A);
  const Tensor indices = at::empty({nnz}, A[1].options()).scatter(0, at_A, A[1]).scatter(0, at_B, B[1]);
  return {(A[0] + B[0] - shared).to(type), indices, at_A.to(type), at_B.to(type)};
}

std::tuple<Tensor, Tensor> product(TensorList A, at::IntArrayRef shape_A, TensorList B, at::IntArrayRef shape_B) {
  const KeptResults kept;
  const auto type = A[0].scalar_type();
  const Tensor inner = A[1].to(at::kLong), starts = B[0].to(at::kLong);
  const Tensor lengths = starts.diff().index_select(0, inner), first = running(lengths);
  const int64_t products = first.select(0, -1).item<int64_t>();
  const Tensor product = at::arange(products, lengths.options());
  const Tensor entry = run_of(first, product);
  const Tensor q = starts.index_select(0, inner.index_select(0, entry)) + product - first.index_select(0, entry);
  const Tensor row = ops::row_indices(A[0], A[1]).index_select(0, entry);
  const Tensor sorted = std::get<0>((row * shape_B[1] + B[1].index_select(0, q)).sort());
  const Distinct distinct(sorted);
  const int64_t nnz = distinct.first.sum().item<int64_t>();
  check_countable("spgemm", nnz, type);
  return pattern_of(distinct.keys(sorted, nnz), shape_A[0], shape_B[1], type);
}

std::tuple<Tensor, Tensor, Tensor> band(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, int64_t low,
                                        int64_t high) {
  const KeptResults kept;
  unpack("band", {indptr, indices}, shape, /*t=*/false);
  const Tensor diagonal = indices.to(at::kLong) - ops::row_indices(indptr, indices);
  const Tensor inside = diagonal.ge(low).logical_and(diagonal.le(high));
  const Tensor positions = inside.nonzero().select(1, 0);
  const Tensor starts = running(inside).index_select(0, indptr.to(at::kLong));
  const auto type = indptr.scalar_type();
  return {starts.to(type), indices.index_select(0, positions), positions.to(type)};
}

std::tuple<Tensor, Tensor, Tensor> graph(const Tensor& edge_index, at::IntArrayRef shape, bool checked) {
  const Tensor sources = edge_index.select(0, 0).to(at::kLong), targets = edge_index.select(0, 1).to(at::kLong);
  if (!checked && !inside(targets, shape[0]).logical_and(inside(sources, shape[1])).all().item<bool>()) return {};
  const auto [keys, order] = (targets * shape[1] + sources).sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const auto type = index_type(/*wide=*/false, {shape[0], shape[1], keys.size(0)});
  const auto [indptr, indices] = pattern_of(keys, shape[0], shape[1], type);
  return {indptr, indices, order};
}

bool is_pattern(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape, bool simple) {
  const int64_t nnz = indices.size(0);
  const Tensor starts = indptr.to(at::kLong);
  Tensor holds = starts.select(0, 0).eq(0).logical_and(starts.select(0, -1).eq(nnz));
  holds = holds.logical_and(starts.diff().ge(0).all()).logical_and(inside(indices, shape[1]).all());
  if (nnz > 1) {
    const Tensor begins = at::zeros({nnz + 1}, indices.options().dtype(at::kBool))
                              .index_fill(0, starts.clamp(0, nnz), true)
                              .slice(0, 1, -1);
    const Tensor step = indices.diff(), ascends = simple ? step.gt(0) : step.ge(0);
    holds = holds.logical_and(ascends.logical_or(begins).all());
  }
  return holds.item<bool>();
}

}  // namespace gossamer::device_patterns
