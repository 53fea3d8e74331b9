// SPDX-License-Identifier: BSD-3-Clause
// A matrix in SciPy's .npz, for C++: the arrays format, shape, data and, by format, indptr and indices or row and col.
// python/gossamer/_npz.py reads and writes the same files with NumPy.
#include <gossamer/kernels/npz_read.h>

#include <ATen/ATen.h>
#include <gossamer/io.h>

#include <algorithm>

#include "core/csr.h"
#include "core/launch.h"
#include "files/mtx.h"
#include "files/npz.h"

namespace gossamer {
namespace {

using Arrays = std::vector<StoredArray>;

// The array of that name, or an error unless it has that many dimensions and a type of these kinds.
const StoredArray& array_of(const Arrays& arrays, const char* name, size_t dim, std::string_view kinds) {
  const auto found = std::find_if(arrays.rbegin(), arrays.rend(), [&](const auto& a) { return a.name == name; });
  if (found == arrays.rend()) throw BadFile("it has no array '" + std::string(name) + "'; is it a sparse matrix?");
  if (found->shape.size() != dim || kinds.find(found->type[0]) == kinds.npos)
    throw BadFile("its " + found->name + " is " + found->type + " of " + std::to_string(found->shape.size()) +
                  " dimensions");
  return *found;
}

// The letters of "S3" (bytes) or "U3" (four bytes each).
std::string text_of(const StoredArray& array) {
  std::string text;
  const size_t width = array.type[0] == 'U' ? 4 : 1, low = std::endian::native == std::endian::little ? 0 : width - 1;
  for (size_t k = low; k < array.data.size(); k += width)
    if (array.data[k] != '\0') text.push_back(array.data[k]);
  return text;
}

// CSR arrays as a matrix, through triplets if its rows are not sorted and unique.
SparseMatrix from_csr(const Tensor& indptr, const Tensor& indices, const Tensor& values, Shape shape) {
  const auto type = indices.scalar_type();
  const bool fits = indptr.scalar_type() == type && (type == at::kInt || type == at::kLong) &&
                    indptr.numel() == shape[0] + 1 && number_at(indptr, 0) == 0 &&
                    number_at(indptr, shape[0]) == indices.numel() && indices.numel() == values.numel();
  const Tensor lengths = fits ? indptr.diff() : Tensor();
  if (fits && lengths.ge(0).all().item<bool>()) {
    const Tensor rows = at::arange(shape[0], at::kLong).repeat_interleave(lengths.to(at::kLong));
    if (!rows.diff().gt(0).logical_or(indices.diff().gt(0)).all().item<bool>())
      return from_coo(rows, indices, values, shape).with_index_type(type);
  }
  return SparseMatrix(indptr, indices, values, shape);  // which says what is wrong, if anything
}

// A row of which a file says nothing still has a place in indptr: `rows` as the matrix will have them.
void check_rows(int64_t rows, const MemoryBound& bound) {
  if (static_cast<uint64_t>(rows) < bound.bytes / 8) return;
  throw BadFile("its shape has " + std::to_string(rows) + " rows, whose indices take " + bound.text());
}

SparseMatrix from_arrays(const Arrays& arrays, const MemoryBound& bound) {
  constexpr const char *integers = "iu", *numbers = "biufc";
  const std::string format = text_of(array_of(arrays, "format", 0, "SU"));
  const Tensor sizes = tensor_of(array_of(arrays, "shape", 1, integers)).to(at::kLong);
  if (sizes.numel() != 2 || number_at(sizes, 0) < 0 || number_at(sizes, 1) < 0)
    throw BadFile("its shape is not (rows, cols)");
  const Shape shape = {number_at(sizes, 0), number_at(sizes, 1)};
  const Tensor values = tensor_of(array_of(arrays, "data", 1, numbers));
  const auto indices = [&](const char* name) { return tensor_of(array_of(arrays, name, 1, integers)); };
  if (format != "csr") check_rows(shape[0], bound);  // which has them in the file
  if (format == "coo") return from_coo(indices("row"), indices("col"), values, shape);
  if (format == "csr") return from_csr(indices("indptr"), indices("indices"), values, shape);
  if (format == "csc") return from_csr(indices("indptr"), indices("indices"), values, {shape[1], shape[0]}).T();
  throw BadFile("its format is '" + format.substr(0, 40) + "', not csr, csc or coo: save A.tocsr() instead");
}

}  // namespace

SparseMatrix load_npz(const std::string& given, std::optional<int64_t> max_bytes) {
  const std::string path = file_name("load_npz", given);
  try {
    const Buffer file = read_file(path, torch_pool(), max_bytes);
    const auto bound = MemoryBound::of(file.size(), max_bytes);
    return from_arrays(arrays_of(file.view(), {"format", "shape", "data", "indptr", "indices", "row", "col"}, bound),
                       bound);
  } catch (const BadFile& error) {
    TORCH_CHECK_VALUE(false, "load_npz: ", path, ": ", error.what());
  } catch (const std::system_error& error) {
    check_system("load_npz", path, error.code().value());
    throw;
  } catch (const c10::Error& error) {  // what from_coo and Pattern say of the numbers in the file
    TORCH_CHECK_VALUE(false, "load_npz: ", path, ": ", error.what_without_backtrace());
  }
}

void save_npz(const std::string& given, const SparseMatrix& A, bool compressed) {
  const std::string path = file_name("save_npz", given.ends_with(".npz") ? given : given + ".npz");
  TORCH_CHECK_VALUE(A.values().dim() == 1, "save_npz: a file holds one matrix, but values has shape ",
                    shape_text(A.values()));
  TORCH_CHECK_TYPE(A.dtype() != at::kBFloat16, "save_npz: NumPy has no bfloat16; save A.to(torch::kFloat32)");
  HostArrays host;
  host.add("save_npz", "indices", A.indices());
  host.add("save_npz", "indptr", A.indptr());
  host.arrays.push_back({"format", "S3", {}, "csr"});
  host.add("save_npz", "shape", at::tensor({A.rows(), A.cols()}, at::kLong));
  host.add("save_npz", "_is_array", at::ones({}, at::kBool));
  host.add("save_npz", "data", A.values());
  check_system("save_npz", path, write_arrays(path, host.arrays, compressed));
}

}  // namespace gossamer
