// SPDX-License-Identifier: BSD-3-Clause
// part-r.npz: SciPy's arrays of a CSR matrix, with the columns of the new numbering, and ours beside them.
#include <ATen/ATen.h>

#include "core/csr.h"
#include "distributed/data/folder.h"
#include "files/mtx.h"
#include "files/npz.h"

namespace gossamer::distributed {
namespace {

void check_integers_within(const std::map<std::string, Tensor>& arrays, const char* name, int64_t end) {
  const Tensor& t = arrays.at(name);
  const bool integers = (t.scalar_type() == at::kInt || t.scalar_type() == at::kLong) && t.dim() == 1;
  if (!integers || t.lt(0).logical_or(t.ge(end)).any().item<bool>())
    throw BadFile(std::string("its ") + name + " are not integers in 0 … " + std::to_string(end - 1));
}

// Whatever a file says, nothing later reads outside: lengths, and every number that points somewhere.
void check_part(const std::map<std::string, Tensor>& arrays, const FolderPlan& plan, int64_t rank) {
  const int64_t own = plan.row_offsets[rank + 1] - plan.row_offsets[rank], entries = plan.entries[rank];
  std::map<std::string, int64_t> lengths = {{"indptr", own + 1},
                                            {"indices", entries},
                                            {"data", entries},
                                            {"row_keys", own},
                                            {"column_keys", plan.column_offsets[rank + 1] - plan.column_offsets[rank]}};
  for (const std::string& name : plan.rows) lengths["rows." + name] = own;
  for (const auto& [name, length] : lengths) {
    if (!arrays.contains(name)) throw BadFile("it has no array '" + name + "'");
    const Tensor& t = arrays.at(name);
    if (t.dim() == 0 || t.size(0) != length)
      throw BadFile("its " + name + " has shape " + shape_text(t) + ", not " + std::to_string(length) + " rows");
  }
  check_integers_within(arrays, "indptr", entries + 1);
  check_integers_within(arrays, "indices", plan.shape[1]);
  check_integers_within(arrays, "row_keys", plan.shape[0]);
  check_integers_within(arrays, "column_keys", plan.shape[1]);
  const Tensor& indptr = arrays.at("indptr");
  if (number_at(indptr, 0) != 0 || number_at(indptr, own) != entries || indptr.diff().lt(0).any().item<bool>())
    throw BadFile("its indptr does not ascend from 0 to " + std::to_string(entries));
}

}  // namespace

std::string part_path(const std::string& folder, int64_t rank) {
  return folder + "/part-" + std::to_string(rank) + ".npz";
}

std::map<std::string, Tensor> read_part(const std::string& folder, const FolderPlan& plan, int64_t rank) {
  std::map<std::string, Tensor> arrays;
  for (StoredArray& array : read_npz(part_path(folder, rank))) {
    const bool letters = array.type.starts_with('S') || array.type.starts_with('U');
    if (!letters) arrays[array.name] = tensor_of(array);
    array.data.clear();
    array.data.shrink_to_fit();  // so that a part is in memory twice, not three times
  }
  const auto id = arrays.find("id");
  if (id == arrays.end() || id->second.numel() != 1 || id->second.item<int64_t>() != plan.id)
    throw BadFile("it is of another save than plan.json");
  check_part(arrays, plan, rank);
  return arrays;
}

void write_part(const std::string& folder, const FolderPlan& plan, int64_t rank,
                const std::vector<std::pair<std::string, Tensor>>& tensors) {
  HostArrays host;
  host.arrays.push_back({"format", "S3", {}, "csr"});
  host.add("save", "shape",
           at::tensor({plan.row_offsets[rank + 1] - plan.row_offsets[rank], plan.shape[1]}, at::kLong));
  host.add("save", "id", at::scalar_tensor(plan.id, at::kLong));
  for (const auto& [name, t] : tensors) host.add("save", name, t);
  const std::string path = part_path(folder, rank);
  check_system("save", path, write_arrays(path, host.arrays, /*compressed=*/false));
}

}  // namespace gossamer::distributed
