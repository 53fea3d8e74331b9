// SPDX-License-Identifier: BSD-3-Clause
// A matrix by parts, from one process that has it whole.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>

#include <filesystem>
#include <limits>
#include <random>

#include "core/csr.h"
#include "distributed/data/folder.h"
#include "files/mtx.h"
#include "files/npz.h"

namespace gossamer::distributed {
namespace {

std::vector<int64_t> numbers(const Tensor& t) {
  return {ptr<int64_t>(t), ptr<int64_t>(t) + t.numel()};
}

int64_t random_id() {
  std::random_device device;
  return (static_cast<int64_t>(device()) << 28 ^ static_cast<int64_t>(device())) & ((int64_t{1} << 60) - 1);
}

void check_length(const std::string& name, const Tensor& t, int64_t length, const char* of) {
  TORCH_CHECK_VALUE(t.dim() >= 1 && t.size(0) == length, "save: ", name, " has shape ", shape_text(t), ", but A has ",
                    length, " ", of);
}

void check_owners(const std::string& name, const Tensor& t, int64_t length, const char* of) {
  check_length(name, t, length, of);
  TORCH_CHECK_TYPE(at::isIntegralType(t.scalar_type(), /*includeBool=*/false), "save: ", name,
                   " must be integers, not ", t.scalar_type());
  TORCH_CHECK_VALUE(t.dim() == 1 && (length == 0 || t.min().item<int64_t>() >= 0), "save: ", name,
                    " must be a vector of processes, from 0");
}

// Which process has each row of X: with the rows of a square matrix, else by ranges of equal length.
Tensor owners_of_columns(const SparseMatrix& A, const Tensor& parts, int64_t count,
                         const std::optional<Tensor>& given) {
  if (given) check_owners("column_parts", *given, A.cols(), "columns");
  if (given) return *given;
  if (A.rows() == A.cols()) return parts;
  return (at::arange(A.cols(), at::kLong) * count).floor_divide(std::max<int64_t>(A.cols(), 1));
}

// For plan.json, which knows no escapes.
void check_name(const std::string& name) {
  for (const char c : name)
    TORCH_CHECK_VALUE(c != '"' && c != '\\' && static_cast<unsigned char>(c) >= ' ', "save: a name has a character ",
                      "that is refused: ", name);
}

}  // namespace

void save(const SparseMatrix& A, const std::string& given, const Tensor& parts, const NamedTensors& rows,
          const std::optional<Tensor>& column_parts) {
  const std::string folder = file_name("save", given);
  check_owners("parts", parts, A.rows(), "rows");
  for (const auto& [name, t] : rows) check_length(name, t, A.rows(), "rows"), check_name(name);
  const int64_t count = parts.numel() ? parts.max().item<int64_t>() + 1 : 1;
  const Tensor owners = parts.cpu(), column_owners = owners_of_columns(A, owners, count, column_parts).cpu();
  FolderPlan plan{random_id(), {A.rows(), A.cols()}, {}, {}, {}, {}};
  for (const auto& [name, t] : rows) plan.rows.push_back(name);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check_system("save", folder, error.value());
  const Tensor indptr = A.indptr().cpu(), indices = A.indices().cpu(), values = A.values().detach().cpu();
  const bool narrow = A.cols() <= std::numeric_limits<int32_t>::max();
  for (int64_t r = 0; r < count; ++r) {
    const auto [entries, own, columns, offsets, keys] =
        ops::distributed_part(indptr, indices, owners, column_owners, count, r);
    plan.row_offsets = numbers(offsets[0]), plan.column_offsets = numbers(offsets[1]);
    plan.entries.push_back(entries.size(0));
    NamedTensors tensors = {{"indptr", own},
                            {"indices", narrow ? columns.to(at::kInt) : columns},
                            {"data", values.index_select(0, entries)},
                            {"row_keys", keys[0]},
                            {"column_keys", keys[1]}};
    for (const auto& [name, t] : rows) tensors.emplace_back("rows." + name, t.detach().cpu().index_select(0, keys[0]));
    write_part(folder, plan, r, tensors);
  }
  try {
    write_plan(folder, plan);
  } catch (const std::system_error& refused) {
    check_system("save", folder + "/plan.json", refused.code().value());
  }
}

}  // namespace gossamer::distributed
