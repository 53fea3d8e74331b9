// SPDX-License-Identifier: BSD-3-Clause
// What reading and writing arrays share: tensors as NumPy's arrays.
#pragma once
#include <ATen/core/Tensor.h>
#include <gossamer/kernels/npz.h>
#include <gossamer/kernels/npz_read.h>

#include <string>
#include <vector>

namespace gossamer {

// NumPy's code of a type, such as "f8"; nullptr if it has none.
const char* numpy_type(at::ScalarType type);
// The type of such a code; undefined if torch has none.
at::ScalarType torch_type(const std::string& code);

// A copy of an array that was read. Throws BadFile if torch has no such type.
at::Tensor tensor_of(const StoredArray& array);

// Copies of the tensors on the host, and arrays that point into them.
struct HostArrays {
  std::vector<at::Tensor> tensors;
  std::vector<NpyArray> arrays;
  void add(const char* op, const std::string& name, const at::Tensor& t);
};

// 0, or the error number of a failed system call. What is wrong otherwise is thrown.
int64_t write_arrays(const std::string& path, const std::vector<NpyArray>& arrays, bool compressed);

}  // namespace gossamer
