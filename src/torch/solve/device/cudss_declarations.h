// SPDX-License-Identifier: BSD-3-Clause
// What Gossamer must know of cuDSS 1 (NVIDIA's direct solver for CUDA) to call it without its header, in our own words.
// Before version 1 its numbers were others. tests/solve/test_cudss.py compares all of this with cudss.h, where the
// package nvidia-cudss-cu13 is installed, and calls a stand-in of these functions.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gossamer::cudss_abi {

inline constexpr int version = 1;

enum Status : int { success = 0, not_supported = 4 };
enum Phase : int { analysis = 3, factorization = 4, solve = 1008 };
enum MatrixType : int { general = 0, positive_definite = 3 };
enum View : int { full = 0, lower = 1 };
enum IndexBase : int { zero = 0 };
enum Layout : int { by_columns = 0 };
enum Setting : int { solve_mode = 4 };
enum SolveMode : int { normal = 0, transposed = 1 };
enum Fact : int { info = 0, replaced_pivots = 2 };
enum NumberType : int { float64 = 1, int32 = 10 };  // CUDA's own
enum Property : int { major = 0, minor = 1, patch = 2 };

using Pointer = void*;  // a handle, a matrix, the settings or the data: only cuDSS knows what is there

struct Functions {
  Status (*create)(Pointer* handle);
  Status (*set_stream)(Pointer handle, Pointer stream);
  Status (*property)(Property which, int* value);
  Status (*config_create)(Pointer* config);
  Status (*config_destroy)(Pointer config);
  Status (*config_set)(Pointer config, Setting setting, const void* value, size_t bytes);
  Status (*data_create)(Pointer handle, Pointer* data);
  Status (*data_destroy)(Pointer handle, Pointer data);
  Status (*data_get)(Pointer handle, Pointer data, Fact fact, void* value, size_t bytes, size_t* written);
  Status (*matrix_create_dense)(Pointer* matrix, int64_t rows, int64_t columns, int64_t stride, const void* values,
                                NumberType type, Layout layout);
  Status (*matrix_create_csr)(Pointer* matrix, int64_t rows, int64_t columns, int64_t nnz, const void* row_starts,
                              const void* row_ends, const void* indices, const void* values, NumberType start_type,
                              NumberType index_type, NumberType value_type, MatrixType kind, View view, IndexBase base);
  Status (*matrix_set_values)(Pointer matrix, const void* values);
  Status (*matrix_destroy)(Pointer matrix);
  Status (*execute)(Pointer handle, int phase, Pointer config, Pointer data, Pointer matrix, Pointer x, Pointer b);
};

}  // namespace gossamer::cudss_abi
