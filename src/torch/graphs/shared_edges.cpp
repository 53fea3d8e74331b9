// SPDX-License-Identifier: BSD-3-Clause
// What a layer computes on where several processes share the graph: this process's rows, and what they want of others.
// All of it is made once and kept with the pattern; making it is a collective.
#include <ATen/ATen.h>

#include "distributed/group.h"
#include "graphs/layers.h"

namespace gossamer::nn {
namespace {

Tensor column_keys(const DistributedMatrix& A) {
  return A.pattern().keep<Tensor>("column_keys", [&A] { return A.halo(A.col_keys()); });
}

}  // namespace

Edges shared_edges(const std::string& layer, const DistributedMatrix& A, SelfLoops loops) {
  const Shape size = A.shape();
  TORCH_CHECK_VALUE(loops == SelfLoops::none || size[0] == size[1], layer, ": self-loops want a square matrix, not (",
                    size[0], ", ", size[1], "); add_self_loops = false leaves them out");
  const Pattern P = A.pattern();
  return P.keep<Edges>("edges " + std::to_string(static_cast<int64_t>(loops)), [&] {
    const auto [indptr, indices, edge] =
        ops::distributed_edges(P.indptr(), P.indices(), column_keys(A), static_cast<int64_t>(loops));
    return Edges{Pattern(indptr, indices, P.shape(), /*check=*/false, Entries::unknown), edge, P.nnz()};
  });
}

DistributedMatrix shared_matrix(const std::string& layer, const DistributedMatrix& A, SelfLoops loops) {
  return A.pattern().keep<DistributedMatrix>("matrix " + std::to_string(static_cast<int64_t>(loops)), [&] {
    const Pattern P = shared_edges(layer, A, loops).pattern;
    const int64_t first = A.column_offsets()[distributed::Group(A.group()).rank()].item<int64_t>();
    const Tensor numbers = A.halo(at::arange(first, first + A.local_shape()[1], at::kLong));
    const Tensor columns = numbers.index_select(0, P.indices().to(at::kCPU, at::kLong));
    return distributed::from_rows(P.indptr(), columns, at::ones({P.nnz()}, A.values().options().requires_grad(false)),
                                  A.offsets(), A.shape(), A.group(), {.keys = A.row_keys()});
  });
}

Tensor entry_keys(const DistributedMatrix& A, const Pattern& P) {
  return P.keep<Tensor>("entry_keys", [&] {
    return ops::entry_keys(P.indptr(), P.indices(), A.row_keys(), column_keys(A), A.shape()[1]);
  });
}

Tensor original_pairs(const DistributedMatrix& A, const Tensor& pairs) {
  return at::stack({column_keys(A).index_select(0, pairs[0]), A.row_keys().index_select(0, pairs[1])});
}

Tensor of_own_rows(const DistributedMatrix& A, const std::function<Tensor()>& make) {
  Tensor rows;
  distributed::Group(A.group()).check_on_all("", [&] {
    rows = make();
    TORCH_CHECK_VALUE(rows.size(0) == A.local_shape()[1], "x must have ", A.local_shape()[1],
                      " rows, this process's, not ", rows.size(0));
  });
  return rows;
}

}  // namespace gossamer::nn
