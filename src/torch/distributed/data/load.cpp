// SPDX-License-Identifier: BSD-3-Clause
// The own part of a matrix that save wrote.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>
#include <gossamer/kernels/file.h>

#include "core/csr.h"
#include "distributed/data/folder.h"
#include "distributed/group.h"
#include "files/mtx.h"

namespace gossamer::distributed {
namespace {

// What a reader throws, with the name of the file.
template <class F>
auto reading(const std::string& path, const F& read) {
  try {
    return read();
  } catch (const BadFile& error) {
    TORCH_CHECK_VALUE(false, "load: ", path, ": ", error.what());
  } catch (const std::system_error& error) {
    check_system("load", path, error.code().value());
    throw;
  }
}

// What from_rows takes, and what was saved beside the matrix.
struct OwnRows {
  Shape shape;
  Tensor indptr, columns, values, offsets;
  RowsOptions numbering;
  NamedTensors rows;
};

OwnRows own_rows(const FolderPlan& plan, std::map<std::string, Tensor> arrays) {
  OwnRows own{{plan.shape[0], plan.shape[1]},
              arrays["indptr"],
              arrays["indices"].to(at::kLong),
              arrays["data"],
              at::tensor(plan.row_offsets, at::kLong),
              {.keys = arrays["row_keys"].to(at::kLong),
               .column_offsets = at::tensor(plan.column_offsets, at::kLong),
               .column_keys = arrays["column_keys"].to(at::kLong)},
              {}};
  for (const std::string& name : plan.rows) own.rows.emplace_back(name, arrays["rows." + name]);
  return own;
}

}  // namespace

std::pair<DistributedMatrix, NamedTensors> load(const std::string& given, const std::string& name) {
  const Group group(name);
  OwnRows own;
  int64_t id = 0;
  group.check_on_all("", [&] {
    const std::string folder = file_name("load", given);
    const FolderPlan plan = reading(folder + "/plan.json", [&] { return read_plan(folder); });
    TORCH_CHECK_VALUE(plan.parts() == group.size(), "load: ", folder, " has ", plan.parts(), " parts for ",
                      group.size(), " processes; save it with parts for ", group.size());
    own =
        own_rows(plan, reading(part_path(folder, group.rank()), [&] { return read_part(folder, plan, group.rank()); }));
    id = plan.id;
  });
  group.agree("", "load: a folder of save " + std::to_string(id));  // disks may differ
  return {from_rows(own.indptr, own.columns, own.values, own.offsets, own.shape, name, own.numbering), own.rows};
}

}  // namespace gossamer::distributed
