// SPDX-License-Identifier: BSD-3-Clause
// A[rows, cols] for C++: what stands in the brackets becomes positions, and these go to the ops of parts.cpp. The
// meaning is that of python/gossamer/_structure.py.
#include <gossamer/structure.h>

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>

#include <algorithm>

#include "core/csr.h"

namespace gossamer {
namespace {

using at::indexing::Slice;

struct Axis {
  int64_t size;
  bool columns;
  at::Device device;  // of the pattern: positions that we make ourselves are made there
  const char* name() const { return columns ? "cols" : "rows"; }
};

// A 0-dim tensor of integers is an integer, as in torch.
bool is_integer(const TensorIndex& key) {
  return key.is_integer() || (key.is_tensor() && key.tensor().defined() && key.tensor().dim() == 0 &&
                              at::isIntegralType(key.tensor().scalar_type(), /*includeBool=*/false));
}

bool is_array(const TensorIndex& key) {
  return key.is_tensor() && !is_integer(key);
}

// The positions a slice stands for, as Python's slice.indices gives them; none for all of the axis. A negative step
// goes from the last position, size - 1, down to the one before the first, -1.
std::optional<Tensor> indices_of(const at::indexing::Slice& s, int64_t size, at::Device device) {
  const int64_t step = s.step().expect_int(), low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const auto bound = [&](const c10::SymInt& given) {
    const int64_t at = given.expect_int();
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  const int64_t begin = bound(s.start()), end = bound(s.stop());
  if (begin == 0 && end == size && step == 1) return std::nullopt;
  return at::arange(begin, step < 0 ? std::min(begin, end) : std::max(begin, end), step,
                    at::TensorOptions().dtype(at::kLong).device(device));
}

const Tensor& defined(const Tensor& array, const Axis& axis) {
  TORCH_CHECK_TYPE(array.defined(), "index: ", axis.name(), " is a tensor that is not defined");
  return array;
}

// An array of one or two dimensions, or a mask, as int64 positions from 0.
Tensor positions(const Tensor& array, const Axis& axis) {
  if (defined(array, axis).dim() != 2 || array.scalar_type() == at::kBool)
    return ops::axis_index(array, axis.size, axis.columns);
  return ops::axis_index(array.flatten(), axis.size, axis.columns).reshape(array.sizes());
}

// One axis of a key as submatrix takes it; none for all of it.
std::optional<Tensor> axis_of(const TensorIndex& key, const Axis& axis) {
  if (key.is_ellipsis()) return std::nullopt;
  if (key.is_slice()) return indices_of(key.slice(), axis.size, axis.device);
  if (is_array(key)) return defined(key.tensor(), axis);
  TORCH_CHECK_TYPE(is_integer(key), "index: ", axis.name(), " must be integers, a slice, an array or a mask, not ",
                   key.is_none() ? "None" : "bool");
  const int64_t at = key.is_tensor() ? key.tensor().item<int64_t>() : key.integer().expect_int();
  return at::full({1}, at, at::TensorOptions().dtype(at::kLong).device(axis.device));
}

// The shape of both, where they are not of one shape: two of one dimension must be of one length, or one of length 1.
void broadcast(Tensor& rows, Tensor& cols) {
  if (rows.dim() == 1 && cols.dim() == 1 && rows.numel() != 1 && cols.numel() != 1) return;  // the op compares them
  const auto fits = [](const Tensor& a, const Tensor& b) {
    for (int64_t k = 1; k <= std::min(a.dim(), b.dim()); ++k)
      if (a.size(-k) != b.size(-k) && a.size(-k) != 1 && b.size(-k) != 1) return false;
    return true;
  };
  TORCH_CHECK_INDEX(fits(rows, cols), "index: rows ", shape_text(rows), " and cols ", shape_text(cols),
                    " do not broadcast to one shape");
  const auto both = at::broadcast_tensors({rows, cols});
  rows = both[0], cols = both[1];
}

// B[p, q] = A[rows[p, q], cols[p, q]], stored where that is stored in A.
SparseMatrix at_places(const SparseMatrix& A, const Tensor& rows, const Tensor& cols) {
  const Pattern& P = A.pattern();
  P.check_simple("index");
  const auto [which, found] =
      ops::entries(P.indptr(), P.indices(), P.sym_shape(), rows.flatten().contiguous(), cols.flatten().contiguous());
  const int64_t width = std::max<int64_t>(rows.size(1), 1);
  const Tensor picked = A.values().index_select(0, found);
  return from_coo(which.floor_divide(width), which.remainder(width), picked, {rows.size(0), rows.size(1)});
}

}  // namespace

SparseMatrix SparseMatrix::index(const TensorIndex& row_key, const TensorIndex& col_key) const {
  const Axis row_axis{rows(), false, indptr().device()}, col_axis{cols(), true, indptr().device()};
  TORCH_CHECK_INDEX(!is_integer(row_key) || !is_integer(col_key),
                    "index: two integers are one entry, a tensor: A.index(i, j) gives it");
  if (!is_array(row_key) || !is_array(col_key))
    return submatrix(axis_of(row_key, row_axis), axis_of(col_key, col_axis));
  Tensor r = positions(row_key.tensor(), row_axis), c = positions(col_key.tensor(), col_axis);
  TORCH_CHECK_INDEX(r.dim() == 2 || c.dim() == 2,
                    "index: two arrays of one dimension are entries, pair by pair, a tensor: A.index(rows, cols) gives "
                    "it, A.submatrix(rows, cols) every row by every column");
  if (r.dim() == 2 && r.size(1) == 1 && (c.dim() == 1 || c.size(0) == 1)) return submatrix(r.flatten(), c.flatten());
  broadcast(r, c);
  return at_places(*this, r, c);
}

SparseMatrix SparseMatrix::index(const TensorIndex& rows) const {
  return index(rows, Slice());
}

SparseMatrix SparseMatrix::index(at::ArrayRef<TensorIndex> key) const {
  TORCH_CHECK_INDEX(key.size() <= 2, "index: a matrix has 2 axes, not ", key.size());
  return key.empty() ? *this : index(key[0], key.size() == 2 ? key[1] : TensorIndex(Slice()));
}

SparseMatrix SparseMatrix::index(std::initializer_list<TensorIndex> key) const {
  return index(at::ArrayRef<TensorIndex>(key));
}

SparseMatrix SparseMatrix::operator[](int64_t i) const {
  return index(TensorIndex(i));
}

SparseMatrix SparseMatrix::operator[](const TensorIndex& rows) const {
  return index(rows);
}

Tensor SparseMatrix::index(const Tensor& rows, const Tensor& cols) const {
  if (is_integer(rows) && is_integer(cols)) return index(rows.item<int64_t>(), cols.item<int64_t>());
  const auto device = indptr().device();
  Tensor r = positions(rows, {this->rows(), false, device}), c = positions(cols, {this->cols(), true, device});
  TORCH_CHECK_INDEX(r.dim() == 1 && c.dim() == 1, "index: rows ", shape_text(rows), " and cols ", shape_text(cols),
                    " give a matrix: A.index({rows, cols})");
  broadcast(r, c);
  pattern().check_simple("index");
  const auto [which, found] = ops::entries(indptr(), indices(), pattern().sym_shape(), r.contiguous(), c.contiguous());
  return ops::place_entries(values(), which, found, r.numel());
}

Tensor SparseMatrix::index(int64_t i, int64_t j) const {
  const auto integer = indptr().options().dtype(at::kLong);
  return index(at::full({1}, i, integer), at::full({1}, j, integer)).select(0, 0);
}

Tensor SparseMatrix::index(std::initializer_list<int64_t> place) const {
  const int64_t* k = place.begin();
  TORCH_CHECK_INDEX(place.size() != 1, "index: {", k[0], "} is a row, a matrix: A[", k[0], "] gives it");
  TORCH_CHECK_INDEX(place.size() == 2, "index: a matrix has 2 axes, not ", place.size());
  return index(k[0], k[1]);
}

}  // namespace gossamer
