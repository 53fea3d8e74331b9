// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gossamer/sparse_matrix.h>

namespace gossamer {

// Both of one shape, device and number of heads; else an error that names the op the user called.
void check_alike(const char* op, const SparseMatrix& A, const SparseMatrix& B);

}  // namespace gossamer
