// SPDX-License-Identifier: BSD-3-Clause
// A folder that holds a matrix by parts: part-0.npz, part-1.npz, … and plan.json. Python reads and writes the same
// (python/gossamer/distributed/_files.py).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gossamer::distributed {

using at::Tensor;

// What every process knows: process r has rows row_offsets[r] … row_offsets[r + 1] - 1 of a new numbering, and
// entries[r] entries. `id` is in every file of one save, and in no other.
struct FolderPlan {
  int64_t id = 0;
  std::vector<int64_t> shape, row_offsets, column_offsets, entries;
  std::vector<std::string> rows;  // the names of the tensors that go with the rows

  int64_t parts() const { return static_cast<int64_t>(entries.size()); }
};

std::string part_path(const std::string& folder, int64_t rank);

// Both throw BadFile for contents, std::system_error for what the system refuses.
FolderPlan read_plan(const std::string& folder);
void write_plan(const std::string& folder, const FolderPlan& plan);

// indptr, indices (columns of the new numbering), data, row_keys, column_keys and rows.NAME, checked against the plan.
std::map<std::string, Tensor> read_part(const std::string& folder, const FolderPlan& plan, int64_t rank);
void write_part(const std::string& folder, const FolderPlan& plan, int64_t rank,
                const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace gossamer::distributed
