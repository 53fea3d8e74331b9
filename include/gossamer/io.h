// SPDX-License-Identifier: BSD-3-Clause
// MatrixMarket files, plain or gzipped. See docs/io.md for what is read and what is refused.
#pragma once
#include <string>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

// A coordinate file: duplicates added, stored zeros kept. real gives float64, integer int64, complex complex128,
// pattern ones in float64. Throws with the name and the line of what is wrong.
SparseMatrix read_mtx(const std::string& path, std::optional<at::ScalarType> dtype = {});
// An array file, as a dense matrix.
Tensor read_mtx_array(const std::string& path, std::optional<at::ScalarType> dtype = {});

// Every number in the fewest digits that read back as itself. The file appears whole or not at all; gzipped if its name
// ends in .gz. symmetry: "general", "symmetric", "skew-symmetric" or "hermitian", of which the matrix must be exactly.
void write_mtx(const std::string& path, const SparseMatrix& A, const std::string& comment = "",
               const std::string& symmetry = "general");
void write_mtx(const std::string& path, const Tensor& dense, const std::string& comment = "",
               const std::string& symmetry = "general");

}  // namespace gossamer
