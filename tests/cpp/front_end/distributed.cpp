// SPDX-License-Identifier: BSD-3-Clause
// Data by parts.
#include <gossamer/distributed.h>

#include "wire.h"

namespace gossamer_cpp {
namespace {

namespace gs = gossamer::distributed;

gs::NamedTensors named(const std::vector<std::string>& names, at::TensorList tensors) {
  gs::NamedTensors rows;
  for (size_t k = 0; k < names.size(); ++k) rows.emplace_back(names[k], tensors[k]);
  return rows;
}

// {shape, indptr, indices, values, offsets, column_offsets, keys, column_keys, rows …}, and the names of the rows.
std::tuple<std::vector<Tensor>, std::vector<std::string>> load(const std::string& folder, const std::string& group) {
  const auto [A, rows] = gs::load(folder, group);
  std::vector<Tensor> tensors = {at::tensor({A.shape()[0], A.shape()[1]}, at::kLong),
                                 A.pattern().indptr(),
                                 A.pattern().indices(),
                                 A.values(),
                                 A.offsets(),
                                 A.column_offsets(),
                                 A.row_keys(),
                                 A.col_keys()};
  std::vector<std::string> names;
  for (const auto& [name, t] : rows) names.push_back(name), tensors.push_back(gs::gather(t, A));
  return {tensors, names};
}

void save(at::TensorList matrix, const std::string& folder, const Tensor& parts, const std::vector<std::string>& names,
          at::TensorList rows, const std::optional<Tensor>& column_parts) {
  gs::save(Wire<SparseMatrix>::in(matrix), folder, parts, named(names, rows), column_parts);
}

Tensor partition(at::TensorList pattern, int64_t parts, const std::string& method) {
  return gs::partition(Wire<Pattern>::in(pattern), parts, method);
}

const gossamer::Composites composites =
    gossamer::Composites("gossamer_cpp")
        .def("distributed_load(str folder, str group) -> (Tensor[], str[])", load)
        .def(
            "distributed_save(Tensor[] A, str folder, Tensor parts, str[] names, Tensor[] rows, Tensor? column_parts) "
            "-> ()",
            save)
        .def("distributed_partition(Tensor[] pattern, int parts, str method) -> Tensor", partition);

}  // namespace
}  // namespace gossamer_cpp
