// SPDX-License-Identifier: BSD-3-Clause
// Named tensors to NumPy's .npz: one op, called by both front ends.
#include <gossamer/kernels/npz.h>

#include <ATen/ATen.h>

#include <gossamer/golden.h>
#include "core/csr.h"
#include "core/op.h"
#include "files/mtx.h"

namespace gossamer {
namespace {

const char* type_code(const std::string& name, at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "f8";
    case at::kFloat:
      return "f4";
    case at::kHalf:
      return "f2";
    case at::kLong:
      return "i8";
    case at::kInt:
      return "i4";
    case at::kBool:
      return "b1";
    default:
      TORCH_CHECK_TYPE(false, "write_npz: cannot write ", name, ", which is ", type);
  }
}

int64_t write(c10::string_view path_, at::ArrayRef<std::string> names, TensorList tensors) {
  const std::string path = file_name("write_npz", path_);
  TORCH_CHECK_VALUE(path.ends_with(".npz"), "write_npz: the name must end in .npz, not ", path);
  TORCH_CHECK_VALUE(names.size() == tensors.size(), "write_npz: ", names.size(), " names for ", tensors.size(),
                    " arrays");
  std::vector<Tensor> host_tensors;  // The arrays point into these.
  std::vector<NpyArray> arrays;
  for (size_t k = 0; k < names.size(); ++k) {
    const Tensor t = host_tensors.emplace_back(tensors[k].detach().cpu().contiguous());
    const auto* data = static_cast<const char*>(t.const_data_ptr());
    arrays.push_back({names[k], type_code(names[k], t.scalar_type()), t.sizes().vec(), {data, t.nbytes()}});
  }
  try {
    write_npz(path, arrays);
    return 0;
  } catch (const BadFile& error) {
    TORCH_CHECK_VALUE(false, path, ": ", error.what());
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

int64_t write_op(c10::string_view path, const std::vector<std::string>& names, TensorList tensors) {
  return write(path, names, tensors);
}

}  // namespace

void write_npz(const std::string& path, const equations::Named& arrays) {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : arrays) {
    names.push_back(name);
    tensors.push_back(value);
  }
  check_system("write_npz", path, write(path, names, tensors));
}

static const Composites composites =
    Composites().def("write_npz(str path, str[] names, Tensor[] arrays) -> int error", write_op);

}  // namespace gossamer
