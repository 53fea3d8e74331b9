// SPDX-License-Identifier: BSD-3-Clause
// MatrixMarket files, plain or gzipped, and NumPy's .npz. See docs/io.md for what is read and what is refused.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

// A coordinate file: duplicates added, stored zeros kept. real gives float64, integer int64, complex complex128,
// pattern ones in float64. Throws with the name and the line of what is wrong. What a file may ask for, unzipped and
// with an index for every row, is 64 times its size and at least 1 GiB, or max_bytes.
SparseMatrix read_mtx(const std::string& path, std::optional<at::ScalarType> dtype = {},
                      std::optional<int64_t> max_bytes = {});
// An array file, as a dense matrix.
Tensor read_mtx_array(const std::string& path, std::optional<at::ScalarType> dtype = {},
                      std::optional<int64_t> max_bytes = {});

// Every number in the fewest digits that read back as itself. The file appears whole or not at all; gzipped if its name
// ends in .gz. symmetry: "general", "symmetric", "skew-symmetric" or "hermitian", of which the matrix must be exactly.
void write_mtx(const std::string& path, const SparseMatrix& A, const std::string& comment = "",
               const std::string& symmetry = "general");
void write_mtx(const std::string& path, const Pattern& pattern, const std::string& comment = "",
               const std::string& symmetry = "general");
void write_mtx(const std::string& path, const Tensor& dense, const std::string& comment = "",
               const std::string& symmetry = "general");

// A CSR, CSC or COO matrix that scipy.sparse.save_npz, Python's gs.save_npz or save_npz wrote. Type and index type are
// kept; unsorted columns are sorted and duplicates added. Nothing in the file is trusted; up to 4 GiB.
// Arrays that a matrix does not have are not looked at. max_bytes as in read_mtx.
SparseMatrix load_npz(const std::string& path, std::optional<int64_t> max_bytes = {});
// The file scipy.sparse.save_npz would write; .npz is added if it is missing. It appears whole or not at all.
// Compression wants libz.so.1, which is looked for when it is needed.
void save_npz(const std::string& path, const SparseMatrix& A, bool compressed = true);
// Named tensors for numpy.load. The name must end in .npz.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace gossamer
