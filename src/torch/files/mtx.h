// SPDX-License-Identifier: BSD-3-Clause
// What reading and writing MatrixMarket files share.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <gossamer/kernels/matrix_market.h>

#include <system_error>

namespace gossamer {

// f<T>() for the types that numbers are parsed as and written from.
template <class F>
auto with_value_type(at::ScalarType type, const F& f) {
  switch (type) {
    case at::kFloat:
      return f.template operator()<float>();
    case at::kLong:
      return f.template operator()<int64_t>();
    case at::kComplexFloat:
      return f.template operator()<std::complex<float>>();
    case at::kComplexDouble:
      return f.template operator()<std::complex<double>>();
    default:
      return f.template operator()<double>();
  }
}

// The ops return the error number of a failed system call, so that Python can raise the OSError it stands for. For C++
// programs it is thrown here.
inline void check_system(const char* op, const std::string& path, int64_t error) {
  TORCH_CHECK(error == 0, op, ": ", path, ": ", std::generic_category().message(static_cast<int>(error)));
}

// A path as the system takes it, which would end it at a NUL and open another file.
inline std::string file_name(const char* op, c10::string_view path) {
  TORCH_CHECK_VALUE(path.find('\0') == c10::string_view::npos, op, ": the path has a NUL in it");
  return std::string(path);
}

}  // namespace gossamer
