// SPDX-License-Identifier: BSD-3-Clause
// Bands, submatrices and single entries of a pattern, with the positions their values come from.
#include <gossamer/structure.h>

#include <ATen/ATen.h>
#include <gossamer/kernels/band.h>
#include <gossamer/kernels/entries.h>
#include <gossamer/kernels/submatrix.h>
#include <gossamer/reduce.h>

#include <algorithm>
#include <numeric>

#include "core/host.h"
#include "core/op.h"
#include "structure/device.h"

namespace gossamer {
namespace {

using ops::Gathered;

Gathered band(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, int64_t low, int64_t high) {
  const KeptResults kept;
  const PatternTensors A = host_pattern("band", {indptr, indices}, shape);
  const int64_t m = A.rows.expect_int(), n = A.cols.expect_int();
  low = std::clamp(low, -m, n), high = std::clamp(high, -m - 1, n);  // beyond these nothing changes, or overflows
  const auto type = indptr.scalar_type();
  const Tensor starts = host_integers(m + 1, type);
  Tensor columns, positions;
  with_index_type<void>(type, [&]<class, class I> {
    const auto view = A.view<I>();
    const int64_t nnz = kernels::band_count(view, low, high, mutable_ptr<I>(starts));
    columns = host_integers(nnz, type), positions = host_integers(nnz, type);
    kernels::band_fill(view, low, high, mutable_ptr<I>(columns), mutable_ptr<I>(positions));
  });
  return {starts, columns, positions};
}

void check_index(const Tensor& index, bool columns) {
  const char* name = columns ? "cols" : "rows";
  TORCH_CHECK_TYPE(at::isIntegralType(index.scalar_type(), /*includeBool=*/false), "index: ", name,
                   " must be integers or booleans, not ", index.scalar_type());
  TORCH_CHECK_INDEX(index.dim() == 1, "index: ", name, " must have one dimension, not shape ", shape_text(index));
}

// An index tensor as int64 on the host, wrapped once and in range.
Tensor in_range(const Tensor& index, int64_t size, bool columns) {
  const char* name = columns ? "cols" : "rows";
  check_index(index, columns);
  TORCH_CHECK_VALUE(size >= 0, "index: a matrix has no ", size, " ", name);
  const Tensor at = index.to(at::kCPU, at::kLong, /*non_blocking=*/false, /*copy=*/true).contiguous();
  int64_t* k = mutable_ptr<int64_t>(at);
  for (int64_t q = 0; q < at.numel(); ++q) {
    TORCH_CHECK_INDEX(k[q] >= -size && k[q] < size, "index: ", name, "[", q, "] is ", k[q], ", outside ", -size, " … ",
                      size - 1);
    if (k[q] < 0) k[q] += size;
  }
  return at;
}

Gathered submatrix_of(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape,
                      const std::optional<Tensor>& rows, const std::optional<Tensor>& cols) {
  const KeptResults kept;
  const PatternTensors A = host_pattern("index", {indptr, indices}, shape);
  const int64_t m = A.rows.expect_int(), n = A.cols.expect_int();
  const Tensor r = rows ? in_range(*rows, m, false) : at::arange(m, at::kLong);
  const Tensor c = cols ? in_range(*cols, n, true) : Tensor();
  std::optional<kernels::ColumnTargets> targets;
  if (cols) targets.emplace(n, c.numel(), ptr<int64_t>(c));
  const kernels::ColumnTargets* to = targets ? &*targets : nullptr;
  const int64_t count = r.numel();
  const Tensor starts = host_integers(count + 1);
  Tensor columns, positions;
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    const auto view = A.view<I>();
    const int64_t nnz = kernels::submatrix_count(view, count, ptr<int64_t>(r), to, mutable_ptr<int64_t>(starts));
    const auto type = index_type(indptr.scalar_type() == at::kLong, {nnz, count, cols ? c.numel() : n});
    columns = host_integers(nnz, type), positions = host_integers(nnz, type);
    with_index_type<void>(type, [&]<class, class J> {
      kernels::submatrix_fill(view, count, ptr<int64_t>(r), to, mutable_ptr<J>(columns), mutable_ptr<J>(positions));
    });
  });
  return {starts.to(columns.scalar_type()), columns, positions};
}

// What the host would refuse, it does: it has the words for it. So it does where only the indices are on a device.
Gathered submatrix_on_device(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape,
                             const std::optional<Tensor>& rows, const std::optional<Tensor>& cols) {
  const auto by_the_host = [&] {
    return on_device(submatrix_of(on_host(indptr), on_host(indices), shape, rows, cols), indptr.device());
  };
  if (indptr.is_cpu()) return by_the_host();
  unpack("index", {indptr, indices}, shape, /*t=*/false);
  if (rows) check_index(*rows, /*columns=*/false);
  if (cols) check_index(*cols, /*columns=*/true);
  const Shape size = {shape[0].expect_int(), shape[1].expect_int()};
  const int64_t count = rows ? rows->size(0) : size[0], width = cols ? cols->size(0) : size[1];
  if (!device_patterns::has_keys({count, width}) || (count > 0 && size[0] == 0)) return by_the_host();
  const auto found = device_patterns::submatrix(indptr, indices, size, rows, cols);
  return std::get<0>(found).defined() ? found : by_the_host();
}

std::tuple<Tensor, Tensor> entries_of(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape,
                                      const Tensor& rows, const Tensor& cols) {
  const KeptResults kept;
  const PatternTensors A = host_pattern("index", {indptr, indices}, shape);
  const Tensor r = in_range(rows, A.rows.expect_int(), false), c = in_range(cols, A.cols.expect_int(), true);
  TORCH_CHECK_INDEX(r.numel() == c.numel(), "index: rows has ", r.numel(), " entries but cols has ", c.numel());
  const Tensor which = host_integers(r.numel()), positions = host_integers(r.numel());
  int64_t found = 0;
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    found = kernels::find_entries(A.view<I>(), r.numel(), ptr<int64_t>(r), ptr<int64_t>(c), mutable_ptr<int64_t>(which),
                                  mutable_ptr<int64_t>(positions));
  });
  return {which.narrow(0, 0, found), positions.narrow(0, 0, found)};
}

std::tuple<Tensor, Tensor> entries_on_device(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape,
                                             const Tensor& rows, const Tensor& cols) {
  const auto by_the_host = [&] {
    return on_device(entries_of(on_host(indptr), on_host(indices), shape, rows, cols), indptr.device());
  };
  if (indptr.is_cpu()) return by_the_host();
  unpack("index", {indptr, indices}, shape, /*t=*/false);
  check_index(rows, /*columns=*/false), check_index(cols, /*columns=*/true);
  const Shape size = {shape[0].expect_int(), shape[1].expect_int()};
  if (rows.size(0) != cols.size(0) || !device_patterns::has_keys(size)) return by_the_host();
  const auto found = device_patterns::entries(indptr, indices, size, rows, cols);
  return std::get<0>(found).defined() ? found : by_the_host();
}

// A mask becomes the places where it is true. Integers are wrapped on the host, where they can be looked at; those on a
// device are left to the op that uses them.
Tensor axis_index(const Tensor& index, int64_t size, bool columns) {
  if (index.scalar_type() != at::kBool) {
    if (index.is_cpu()) return in_range(index, size, columns);
    check_index(index, columns);
    return index.to(at::kLong, /*non_blocking=*/false, /*copy=*/true);
  }
  const char* name = columns ? "columns" : "rows";
  TORCH_CHECK_INDEX(index.dim() == 1 && index.size(0) == size, "index: the mask of ", name, " has shape ",
                    shape_text(index), " but A has ", size, " ", name);
  return index.nonzero().select(1, 0).contiguous();
}

const Op<decltype(ops::band)> band_op{{
    .schema = "band(Tensor indptr, Tensor indices, SymInt[] shape, int low, int high) -> (Tensor indptr, Tensor "
              "indices, Tensor positions)",
    .forward = band,
    .on_device = device_patterns::band,
    .meta = false,
}};
const Op<decltype(ops::axis_index)> axis_index_op{{
    .schema = "axis_index(Tensor index, int size, bool columns) -> Tensor",
    .forward = axis_index,
    .meta = false,
}};
const Op<decltype(ops::submatrix)> submatrix_op{{
    .schema = "submatrix(Tensor indptr, Tensor indices, SymInt[] shape, Tensor? rows, Tensor? cols) -> (Tensor indptr, "
              "Tensor indices, Tensor positions)",
    .forward = submatrix_of,
    .on_device = submatrix_on_device,
    .meta = false,
}};
const Op<decltype(ops::entries)> entries_op{{
    .schema = "entries(Tensor indptr, Tensor indices, SymInt[] shape, Tensor rows, Tensor cols) -> (Tensor which, "
              "Tensor positions)",
    .forward = entries_of,
    .on_device = entries_on_device,
    .meta = false,
}};

}  // namespace

Gathered ops::band(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, int64_t low, int64_t high) {
  return band_op(indptr, indices, shape, low, high);
}

Tensor ops::axis_index(const Tensor& index, int64_t size, bool columns) {
  return axis_index_op(index, size, columns);
}

Gathered ops::submatrix(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape,
                        const std::optional<Tensor>& rows, const std::optional<Tensor>& cols) {
  return submatrix_op(indptr, indices, shape, rows, cols);
}

std::tuple<Tensor, Tensor> ops::entries(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape,
                                        const Tensor& rows, const Tensor& cols) {
  return entries_op(indptr, indices, shape, rows, cols);
}

Tensor ops::place_entries(const Tensor& values, const Tensor& which, const Tensor& positions, int64_t size) {
  TORCH_CHECK_VALUE(values.dim() >= 1, "place_entries: values must be (nnz,) or (nnz, H), not a single number");
  auto shape = values.sym_sizes().vec();
  shape[0] = size;
  return values.new_zeros_symint(shape).index_copy(0, which, values.index_select(0, positions));
}

static const Composites composites = Composites().def(
    "place_entries(Tensor values, Tensor which, Tensor positions, int size) -> Tensor", ops::place_entries);

// The front end. What is kept with a pattern is keyed by what was asked of it.

namespace {

struct Derived {
  Pattern pattern;
  Tensor positions;
};

// A part of a simple pattern is simple; one of another may be or not.
Entries entries_within(const Pattern& P) {
  return P.entries() == Entries::unique ? Entries::unique : Entries::unknown;
}

SparseMatrix gathered(const SparseMatrix& A, const Gathered& parts, int64_t cols) {
  const auto& [indptr, indices, positions] = parts;
  const Pattern pattern(indptr, indices, {indptr.size(0) - 1, cols}, /*check=*/false, entries_within(A.pattern()));
  return SparseMatrix(pattern, A.values().index_select(0, positions));
}

SparseMatrix between(const SparseMatrix& A, int64_t low, int64_t high) {
  const Pattern& P = A.pattern();
  const auto kept = P.keep<Derived>("band " + std::to_string(low) + " " + std::to_string(high), [&] {
    const auto [indptr, indices, positions] = ops::band(P.indptr(), P.indices(), P.sym_shape(), low, high);
    return Derived{Pattern(indptr, indices, P.shape(), /*check=*/false, entries_within(P)), positions};
  });
  return SparseMatrix(kept.pattern, A.values().index_select(0, kept.positions));
}

}  // namespace

Tensor SparseMatrix::diagonal(int64_t k) const {
  const Pattern& P = pattern();
  P.check_simple("diagonal");
  k = std::clamp(k, -P.rows(), P.cols());
  const int64_t row = std::max<int64_t>(-k, 0), col = std::max<int64_t>(k, 0);
  const int64_t size = std::max<int64_t>(std::min(P.rows() - row, P.cols() - col), 0);
  using Found = std::tuple<Tensor, Tensor>;
  const auto [which, positions] = P.keep<Found>("diagonal " + std::to_string(k), [&]() -> Found {
    const Tensor i = at::arange(size, P.indptr().options().dtype(at::kLong));
    return ops::entries(P.indptr(), P.indices(), P.sym_shape(), i + row, i + col);
  });
  return ops::place_entries(values(), which, positions, size);
}

Tensor SparseMatrix::trace() const {
  return ops::total(diagonal());
}

SparseMatrix SparseMatrix::tril(int64_t k) const {
  return between(*this, -rows(), std::clamp(k, -rows() - 1, cols()));
}

SparseMatrix SparseMatrix::triu(int64_t k) const {
  return between(*this, std::clamp(k, -rows(), cols()), cols());
}

SparseMatrix SparseMatrix::submatrix(const std::optional<Tensor>& rows, const std::optional<Tensor>& cols) const {
  std::optional<Tensor> r, c;
  if (rows) r = ops::axis_index(*rows, this->rows(), /*columns=*/false);
  if (cols) c = ops::axis_index(*cols, this->cols(), /*columns=*/true);
  return gathered(*this, ops::submatrix(pattern().indptr(), pattern().indices(), pattern().sym_shape(), r, c),
                  c ? c->numel() : this->cols());
}

}  // namespace gossamer
