// SPDX-License-Identifier: BSD-3-Clause
// MatrixMarket files to tensors: one op, called by both front ends. It throws what is wrong with the contents.
#include <gossamer/io.h>

#include <ATen/ATen.h>
#include <gossamer/kernels/file.h>
#include <gossamer/kernels/matrix_market_read.h>
#include <gossamer/kernels/triplets.h>

#include "core/csr.h"
#include "core/launch.h"
#include "core/op.h"
#include "files/mtx.h"

namespace gossamer {
namespace {

namespace mm = matrix_market;
using mm::Field;
using mm::Format;
using mm::Header;
using mm::Symmetry;
using TextParts = std::vector<mm::Part>;  // pieces of the text, one a thread

// {indptr, indices, values} or {dense}; rows; columns; the error number of a system call that failed, or 0.
using Contents = std::tuple<std::vector<Tensor>, int64_t, int64_t, int64_t>;

// The type that numbers are parsed as. A decimal number that is wanted as float is parsed as float: parsed as double
// and then converted, it could be rounded twice.
at::ScalarType parsed_as(const std::string& path, Field field, std::optional<at::ScalarType> dtype) {
  const auto file_type = field == Field::integer   ? at::kLong
                         : field == Field::complex ? at::kComplexDouble
                                                   : at::kDouble;
  if (!dtype) return file_type;
  TORCH_CHECK_TYPE(at::canCast(file_type, *dtype), "read_mtx: ", path, " is ", mm::fields[static_cast<int>(field)],
                   ", which does not fit ", *dtype);
  if (file_type == at::kDouble && *dtype == at::kFloat) return at::kFloat;
  return file_type == at::kComplexDouble && *dtype == at::kComplexFloat ? at::kComplexFloat : file_type;
}

// Uninitialised, on large pages where the system has them.
Tensor buffer(int64_t n, at::ScalarType type) {
  Tensor t = at::empty({n}, type);
  use_large_pages(t.mutable_data_ptr(), t.nbytes());
  return t;
}

template <class T, class I>
std::vector<Tensor> read_coordinates(const Header& h, const TextParts& parts, at::ScalarType value,
                                     at::ScalarType index) {
  const Pool exec = torch_pool();
  const int64_t m = h.rows, n = h.entries;
  const Tensor rows = buffer(n, index), cols = buffer(n, index), entries = buffer(n, value);
  I *r = mutable_ptr<I>(rows), *c = mutable_ptr<I>(cols);
  mm::read_coordinates(exec, h, parts, r, c, mutable_ptr<T>(entries));

  const auto assemble = [&](const auto& mirror) -> std::vector<Tensor> {
    const int64_t total = kernels::triplets_total(n, r, c, mirror);
    const Tensor indptr = buffer(m + 1, index);
    I* p = mutable_ptr<I>(indptr);
    const bool in_order = total == n && kernels::triplets_in_order(m, n, r, p);
    const Tensor indices = in_order ? cols : buffer(total, index), values = in_order ? entries : buffer(total, value);
    I* i = mutable_ptr<I>(indices);
    T* v = mutable_ptr<T>(values);
    if (!in_order) kernels::triplets_by_row(exec, m, n, r, c, ptr<T>(entries), mirror, p, i, v);
    if (kernels::sort_columns(exec, m, p, i, v) == 0) return {indptr, indices, values};
    const int64_t nnz = kernels::add_repeated(m, p, i, v);
    return {indptr, indices.narrow(0, 0, nnz).clone(), values.narrow(0, 0, nnz).clone()};
  };
  if (h.symmetry == Symmetry::general) return assemble(kernels::NotMirrored{});
  return assemble([&h](T value_) { return mm::mirrored(value_, h.symmetry); });
}

std::vector<Tensor> read_parts(const Header& h, const TextParts& parts, at::ScalarType value) {
  if (h.format == Format::array) {
    Tensor dense = at::empty({h.rows, h.cols}, value);
    with_value_type(value, [&]<class T> { mm::read_array(torch_pool(), h, parts, mutable_ptr<T>(dense)); });
    return {dense};
  }
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  const auto index = h.rows < limit && h.cols < limit && h.entries < limit / 2 ? at::kInt : at::kLong;
  return with_value_type(value, [&]<class T> {
    return index == at::kInt ? read_coordinates<T, int32_t>(h, parts, value, index)
                             : read_coordinates<T, int64_t>(h, parts, value, index);
  });
}

// To another type whose range holds every number: rounding is what a smaller type is for, wrapping around is not.
Tensor within_range(const std::string& path, const Tensor& values, at::ScalarType dtype) {
  const Tensor cast = values.to(dtype);
  const bool integers = at::isIntegralType(dtype, /*includeBool=*/false);
  const bool fits = integers ? at::equal(cast.to(values.scalar_type()), values)
                             : cast.isfinite().logical_or(values.isfinite().logical_not()).all().item<bool>();
  TORCH_CHECK_VALUE(fits, "read_mtx: ", path, " has numbers that do not fit ", dtype);
  return cast;
}

Contents read(c10::string_view path_, std::optional<at::ScalarType> dtype, std::optional<int64_t> max_bytes) {
  const std::string path = file_name("read_mtx", path_);
  try {
    const Buffer file = read_file(path, torch_pool(), max_bytes);
    const std::string_view text = file.view();
    const Header h = mm::read_header(text);
    const auto parsed = parsed_as(path, h.field, dtype);
    const TextParts parts = mm::split(torch_pool(), h, text.data() + text.size());
    mm::check_rows(h, MemoryBound::of(text.size(), max_bytes));
    std::vector<Tensor> result = read_parts(h, parts, parsed);
    if (dtype) result.back() = within_range(path, result.back(), *dtype);
    return {result, h.rows, h.cols, 0};
  } catch (const mm::Error& error) {
    TORCH_CHECK_VALUE(false, path, ":", error.line(), ": ", error.what());
  } catch (const BadFile& error) {
    TORCH_CHECK_VALUE(false, path, ": ", error.what());
  } catch (const std::system_error& error) {
    return {std::vector<Tensor>(), 0, 0, error.code().value()};
  }
}

Contents call_read(const std::string& path, std::optional<at::ScalarType> dtype, std::optional<int64_t> max_bytes) {
  auto contents = read(path, dtype, max_bytes);
  check_system("read_mtx", path, std::get<3>(contents));
  return contents;
}

}  // namespace

SparseMatrix read_mtx(const std::string& path, std::optional<at::ScalarType> dtype, std::optional<int64_t> max_bytes) {
  const auto [tensors, rows, cols, error] = call_read(path, dtype, max_bytes);
  TORCH_CHECK_VALUE(tensors.size() == 3, path, " is an array file, a dense matrix: read_mtx_array reads it");
  return SparseMatrix(tensors[0], tensors[1], tensors[2], {rows, cols}, /*check=*/false);
}

Tensor read_mtx_array(const std::string& path, std::optional<at::ScalarType> dtype, std::optional<int64_t> max_bytes) {
  const auto [tensors, rows, cols, error] = call_read(path, dtype, max_bytes);
  TORCH_CHECK_VALUE(tensors.size() == 1, path, " is a coordinate file, a sparse matrix: read_mtx reads it");
  return tensors[0];
}

static const Composites composites = Composites().def(
    "read_mtx(str path, ScalarType? dtype, int? max_bytes=None) "
    "-> (Tensor[] parts, int rows, int cols, int error)",
    read);

}  // namespace gossamer
