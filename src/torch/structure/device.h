// SPDX-License-Identifier: BSD-3-Clause
// Patterns that are born on a device, and stay there: what the host's kernels find by loops, found by torch's own
// sorts, searches and scans, which run where the tensors are. An entry (i, j) is the number i · cols + j, its key; the
// keys of a pattern ascend, so a search finds one and a rank counts those below. Where a size must be known to the
// host, that is one look at the device, and said. What is out of range gives tensors that are not defined: the host has
// the words for it.
#pragma once
#include <optional>
#include <tuple>

#include "core/csr.h"

namespace gossamer::device_patterns {

// No look.
std::tuple<Tensor, Tensor, Tensor> transpose(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape);

// One look: the number of entries, or that a coordinate is out of range.
std::tuple<Tensor, Tensor, Tensor> coo(const Tensor& rows, const Tensor& cols, at::IntArrayRef shape);

// One look: how many entries both have.
std::tuple<Tensor, Tensor, Tensor, Tensor> merge(TensorList A, TensorList B, at::IntArrayRef shape, bool intersect);

// Two looks: how many products there are, and how many entries.  O(products) memory.
std::tuple<Tensor, Tensor> product(TensorList A, at::IntArrayRef shape_A, TensorList B, at::IntArrayRef shape_B);

// One look: how many entries are kept.
std::tuple<Tensor, Tensor, Tensor> band(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, int64_t low,
                                        int64_t high);

// No look, if `checked`; else one: that an edge is out of range. The edges in CSR order, none merged.
std::tuple<Tensor, Tensor, Tensor> graph(const Tensor& edge_index, at::IntArrayRef shape, bool checked);

// One look: whether the integers are a pattern of this shape, `simple` if it must be.
bool is_pattern(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape, bool simple);

// One look: the number of entries, or that an index is out of range.
std::tuple<Tensor, Tensor, Tensor> submatrix(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape,
                                             const std::optional<Tensor>& rows, const std::optional<Tensor>& cols);

// One look: how many of the places are stored, or that one is out of range.
std::tuple<Tensor, Tensor> entries(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape,
                                   const Tensor& rows, const Tensor& cols);

// No look.
std::tuple<Tensor, Tensor, Tensor, Tensor> kron(TensorList A, TensorList B, int64_t cols_B, at::ScalarType type);

// No look.
std::tuple<Tensor, Tensor, Tensor> blocks(TensorList indptrs, TensorList indices, at::IntArrayRef at, int64_t rows,
                                          at::ScalarType type);

// Whether keys of this shape fit 64 bits; where not, the host does the work.
bool has_keys(at::IntArrayRef shape);

}  // namespace gossamer::device_patterns
