// SPDX-License-Identifier: BSD-3-Clause
// Named tensors to NumPy's .npz: one op, called by both front ends.
#include "files/npz.h"

#include <ATen/ATen.h>
#include <gossamer/io.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/csr.h"
#include "core/op.h"
#include "files/mtx.h"

namespace gossamer {
namespace {

constexpr std::pair<at::ScalarType, const char*> types[] = {
    {at::kDouble, "f8"},       {at::kFloat, "f4"}, {at::kHalf, "f2"},   {at::kComplexDouble, "c16"},
    {at::kComplexFloat, "c8"}, {at::kLong, "i8"},  {at::kInt, "i4"},    {at::kShort, "i2"},
    {at::kChar, "i1"},         {at::kByte, "u1"},  {at::kUInt16, "u2"}, {at::kUInt32, "u4"},
    {at::kUInt64, "u8"},       {at::kBool, "b1"}};

int64_t write_op(c10::string_view path_, const std::vector<std::string>& names, TensorList tensors) {
  const std::string path = file_name("write_npz", path_);
  TORCH_CHECK_VALUE(path.ends_with(".npz"), "write_npz: the name must end in .npz, not ", path);
  TORCH_CHECK_VALUE(names.size() == tensors.size(), "write_npz: ", names.size(), " names for ", tensors.size(),
                    " arrays");
  HostArrays host;
  for (size_t k = 0; k < names.size(); ++k) host.add("write_npz", names[k], tensors[k]);
  return write_arrays(path, host.arrays, /*compressed=*/false);
}

}  // namespace

const char* numpy_type(at::ScalarType type) {
  const auto found = std::find_if(std::begin(types), std::end(types), [&](const auto& t) { return t.first == type; });
  return found == std::end(types) ? nullptr : found->second;
}

at::ScalarType torch_type(const std::string& code) {
  const auto found = std::find_if(std::begin(types), std::end(types), [&](const auto& t) { return t.second == code; });
  return found == std::end(types) ? at::ScalarType::Undefined : found->first;
}

Tensor tensor_of(const StoredArray& array) {
  const at::ScalarType type = torch_type(array.type);
  if (type == at::ScalarType::Undefined)
    throw BadFile("its " + array.name + " is " + array.type + ", which torch does not have");
  const Tensor t = at::empty(array.shape, type == at::kBool ? at::kByte : type);
  if (!array.data.empty()) std::memcpy(t.mutable_data_ptr(), array.data.data(), array.data.size());
  return type == at::kBool ? t.ne(0) : t;  // a bool of C++ is 0 or 1, whatever the file says
}

void HostArrays::add(const char* op, const std::string& name, const Tensor& t) {
  const char* type = numpy_type(t.scalar_type());
  TORCH_CHECK_TYPE(type, op, ": cannot write ", name, ", which is ", t.scalar_type());
  const Tensor host = tensors.emplace_back(t.detach().cpu().contiguous().resolve_conj());
  arrays.push_back({name, type, host.sizes().vec(), {static_cast<const char*>(host.const_data_ptr()), host.nbytes()}});
}

int64_t write_arrays(const std::string& path, const std::vector<NpyArray>& arrays, bool compressed) {
  try {
    write_npz(path, arrays, compressed);
    return 0;
  } catch (const BadFile& error) {
    TORCH_CHECK_VALUE(false, path, ": ", error.what());
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : arrays) {
    names.push_back(name);
    tensors.push_back(value);
  }
  check_system("write_npz", path, write_op(path, names, tensors));
}

static const Composites composites =
    Composites().def("write_npz(str path, str[] names, Tensor[] arrays) -> int error", write_op);

}  // namespace gossamer
