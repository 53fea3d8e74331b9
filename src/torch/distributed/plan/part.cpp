// SPDX-License-Identifier: BSD-3-Clause
// One rank's rows of a matrix that every rank has. Rows and columns get new numbers, rank by rank, in which each rank's
// own follow each other in their old order.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>

#include "core/host.h"
#include "core/op.h"
#include "distributed/plan/integers.h"

namespace gossamer {
namespace {

using distributed::integers;
using distributed::numbers;

// Of rows, or of columns: where each rank's begin, the old numbers of this rank's, and the new number of each.
struct Numbering {
  std::vector<int64_t> offsets, own, renumbered;
};

Numbering numbering(const std::vector<int64_t>& owners, int64_t ranks, int64_t rank) {
  std::vector<int64_t> counts(ranks);
  for (const int64_t owner : owners) {
    TORCH_CHECK_INDEX(owner >= 0 && owner < ranks, "scatter: rank ", owner, " is not one of ", ranks);
    ++counts[owner];
  }
  Numbering found{distributed::starts_of(counts), {}, std::vector<int64_t>(owners.size())};
  std::vector<int64_t> next = found.offsets;
  for (size_t i = 0; i < owners.size(); ++i) {
    found.renumbered[i] = next[owners[i]]++;
    if (owners[i] == rank) found.own.push_back(static_cast<int64_t>(i));
  }
  return found;
}

using Part = std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>, std::vector<Tensor>>;

template <class I>
Part part(const PatternView<I>& A, const Numbering& rows, const Numbering& cols) {
  std::vector<int64_t> entries, columns, indptr = {0};
  for (const int64_t i : rows.own) {
    for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p)
      entries.push_back(p), columns.push_back(cols.renumbered[A.indices[p]]);
    indptr.push_back(static_cast<int64_t>(entries.size()));
  }
  return {integers(entries),
          integers(indptr),
          integers(columns),
          {integers(rows.offsets), integers(cols.offsets)},
          {integers(rows.own), integers(cols.own)}};
}

}  // namespace

Part ops::distributed_part(const Tensor& indptr, const Tensor& indices, const Tensor& owners,
                           const Tensor& column_owners, int64_t ranks, int64_t rank) {
  const KeptResults kept;
  check_integers("scatter", "parts", owners);
  check_integers("scatter", "column_parts", column_owners);
  TORCH_CHECK_VALUE(ranks > 0 && rank >= 0 && rank < ranks, "scatter: there is no rank ", rank, " of ", ranks);
  const PatternTensors A =
      host_pattern("scatter", {indptr.cpu(), indices.cpu()}, {owners.size(0), column_owners.size(0)});
  const Numbering rows = numbering(numbers(owners), ranks, rank), cols = numbering(numbers(column_owners), ranks, rank);
  Part found;
  with_index_type<void>(A.indptr.scalar_type(), [&]<class, class I> { found = part(A.view<I>(), rows, cols); });
  std::get<1>(found) = std::get<1>(found).to(indptr.scalar_type());  // whose width is kept
  return found;
}

namespace {
const Composites composites = Composites().def(
    "distributed_part(Tensor indptr, Tensor indices, Tensor owners, Tensor column_owners, int ranks, int rank) -> "
    "(Tensor entries, Tensor indptr, Tensor columns, Tensor[] offsets, Tensor[] keys)",
    ops::distributed_part);

}

}  // namespace gossamer
