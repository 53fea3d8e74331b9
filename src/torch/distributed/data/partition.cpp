// SPDX-License-Identifier: BSD-3-Clause
// Rows to processes: integers only, on the host, once. METIS where it is installed, else ranges of rows.
#include <gossamer/distributed.h>
#include <gossamer/kernels/partition.h>

#include <ATen/ATen.h>

#include <limits>

#include "core/csr.h"
#include "core/host.h"
#include "core/op.h"
#include "solve/engines/metis.h"

namespace gossamer::distributed {
namespace {

constexpr const char* name = "partition";

// A square pattern and its transpose, on the host.
struct Square {
  PatternTensors A, T;

  Square(TensorList pattern, SymIntArrayRef shape) {
    TORCH_CHECK_VALUE(pattern.size() >= 2, name, ": a pattern is a list of at least two tensors");
    const std::vector<Tensor> host = {pattern[0].cpu(), pattern[1].cpu()};
    A = host_pattern(name, host, shape);
    TORCH_CHECK_VALUE(A.rows == A.cols, name, ": METIS wants a square matrix, not ", A.rows, " x ", A.cols,
                      "; method=\"contiguous\" takes any");
    T = unpack(name, host, shape, /*t=*/true);
  }
};

Tensor contiguous_parts(const Tensor& indptr, int64_t parts) {
  const Tensor host = indptr.cpu().contiguous(), part = host_integers(host.size(0) - 1);
  with_index_type<void>(host.scalar_type(), [&]<class, class I> {
    kernels::contiguous_parts(part.size(0), ptr<I>(host), parts, mutable_ptr<int64_t>(part));
  });
  return part;
}

// The graph that METIS wants, in 64 bits, as pymetis takes it: ptr, neighbours, weights.
std::tuple<Tensor, Tensor, Tensor> graph(TensorList pattern, SymIntArrayRef shape) {
  const Square square(pattern, shape);
  const int64_t rows = square.A.indptr.size(0) - 1;
  const Tensor begin = host_integers(rows + 1);
  Tensor neighbours;
  with_index_type<void>(square.A.indptr.scalar_type(), [&]<class, class I> {
    const auto A = square.A.view<I>(), T = square.T.view<I>();
    neighbours = host_integers(kernels::undirected_ptr(A, T, mutable_ptr<int64_t>(begin)));
    kernels::undirected_neighbours(A, T, mutable_ptr<int64_t>(neighbours));
  });
  return {begin, neighbours, square.A.indptr.diff().to(at::kLong) + 1};
}

Tensor metis(TensorList pattern, SymIntArrayRef shape, int64_t parts) {
  const Square square(pattern, shape);
  const int64_t rows = square.A.indptr.size(0) - 1;
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  TORCH_CHECK_VALUE(2 * square.A.indices.size(0) + rows < limit, name, ": this METIS counts in 32 bits, too few for ",
                    square.A.indices.size(0), " entries; pymetis counts in 64");
  std::vector<int32_t> begin(rows + 1), neighbours, weights(rows);
  with_index_type<void>(square.A.indptr.scalar_type(), [&]<class, class I> {
    const auto A = square.A.view<I>(), T = square.T.view<I>();
    neighbours.resize(kernels::undirected_ptr(A, T, begin.data()));
    kernels::undirected_neighbours(A, T, neighbours.data());
    for (int64_t i = 0; i < rows; ++i) weights[i] = static_cast<int32_t>(kernels::row_weight(A.indptr, i));
  });
  const auto part =
      metis_parts(std::move(begin), std::move(neighbours), std::move(weights), static_cast<int32_t>(parts));
  TORCH_CHECK(static_cast<int64_t>(part.size()) == rows, name, ": METIS failed on this graph");
  return at::tensor(part, at::kInt).to(at::kLong);
}

Tensor parts_of(TensorList pattern, SymIntArrayRef shape, int64_t parts, c10::string_view method) {
  const bool automatic = method == "auto";
  TORCH_CHECK_VALUE(automatic || method == "metis" || method == "contiguous", name,
                    ": method must be \"auto\", \"metis\" or \"contiguous\", not \"", method, "\"");
  TORCH_CHECK_VALUE(parts >= 1 && parts <= std::numeric_limits<int32_t>::max(), name,
                    ": parts must be at least 1, not ", parts);
  TORCH_CHECK_VALUE(pattern.size() >= 2, name, ": a pattern is a list of at least two tensors");
  const PatternTensors A = host_pattern(name, {pattern[0].cpu(), pattern[1].cpu()}, shape);
  const bool square = A.rows == A.cols;
  if (method == "contiguous" || (automatic && !(square && has_metis()))) return contiguous_parts(A.indptr, parts);
  TORCH_CHECK_NOT_IMPLEMENTED(has_metis(), name,
                              ": METIS is not here; install pymetis (Python) or libmetis5 (Debian), or take "
                              "method=\"contiguous\"");
  if (square && (parts == 1 || A.rows <= parts)) return contiguous_parts(A.indptr, parts);  // nothing to choose
  return metis(pattern, shape, parts);
}

const Composites composites =
    Composites()
        .def("distributed_parts(Tensor[] pattern, SymInt[] shape, int parts, str method) -> Tensor", parts_of)
        .def("distributed_graph(Tensor[] pattern, SymInt[] shape) -> (Tensor ptr, Tensor neighbours, Tensor weights)",
             graph);

}  // namespace

Tensor partition(const Pattern& A, int64_t parts, const std::string& method) {
  return parts_of(A.tensors(), {A.shape()[0], A.shape()[1]}, parts, method);
}

}  // namespace gossamer::distributed
