// SPDX-License-Identifier: BSD-3-Clause
// The plan of an exchange, once for a pattern: columns become labels, and ranks learn what they send to whom. Memory is
// that of the own rows and their halo; nothing is as long as all rows of all ranks.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>

#include <numeric>
#include <sstream>

#include "core/host.h"
#include "core/op.h"
#include "distributed/exchange.h"
#include "distributed/plan/integers.h"

namespace gossamer {
namespace {

using distributed::counts_of_others;
using distributed::Group;
using distributed::integers;
using distributed::interior_rows;
using distributed::numbers;
using distributed::on_device_of;
using Plan = std::tuple<std::vector<Tensor>, std::vector<int64_t>>;

void check_offsets(const char* name, const Tensor& offsets, int64_t ranks) {
  check_integers("distributed_plan", name, offsets);
  TORCH_CHECK_VALUE(offsets.size(0) == ranks + 1, "distributed_plan: ", name, " has ", offsets.size(0),
                    " numbers, but ", ranks, " ranks need ", ranks + 1);
  const std::vector<int64_t> all = numbers(offsets);
  TORCH_CHECK_VALUE(all[0] == 0 && std::is_sorted(all.begin(), all.end()), "distributed_plan: ", name,
                    " must ascend from 0");
}

std::string offsets_text(const Tensor& rows, const Tensor& cols) {
  std::ostringstream text;
  text << "offsets of rows " << numbers(rows) << " and of columns " << numbers(cols);
  return text.str();
}

void check_rows(const Tensor& indptr, const Tensor& columns, int64_t rows, int64_t cols) {
  check_integers("distributed_plan", "indptr", indptr);
  check_integers("distributed_plan", "columns", columns);
  TORCH_CHECK_VALUE(indptr.size(0) == rows + 1, "distributed_plan: indptr has ", indptr.size(0),
                    " numbers, but this rank has ", rows, " rows by the offsets");
  const std::vector<int64_t> starts = numbers(indptr);
  TORCH_CHECK_VALUE(starts[0] == 0 && std::is_sorted(starts.begin(), starts.end()) && starts.back() == columns.size(0),
                    "distributed_plan: indptr must ascend from 0 to the number of columns, ", columns.size(0));
  if (columns.numel() == 0) return;
  const int64_t first = columns.min().item<int64_t>(), last = columns.max().item<int64_t>();
  TORCH_CHECK_INDEX(first >= 0 && last < cols, "distributed_plan: column ", first < 0 ? first : last,
                    " is outside the ", cols, " columns");
}

// The columns of the own entries as labels, and the halo: the columns of others, ascending, and so by owner.
template <class I>
std::vector<int64_t> relabel(const std::vector<int64_t>& columns, int64_t low, int64_t high, I* labels) {
  std::vector<int64_t> cut, ids, halo;
  for (size_t p = 0; p < columns.size(); ++p) {
    labels[p] = static_cast<I>(columns[p] - low);
    if (columns[p] < low || columns[p] >= high) cut.push_back(static_cast<int64_t>(p)), ids.push_back(columns[p]);
  }
  for (const int64_t k : distributed::order_of(ids)) {
    if (halo.empty() || halo.back() != ids[k]) halo.push_back(ids[k]);
    labels[cut[k]] = static_cast<I>(high - low + static_cast<int64_t>(halo.size()) - 1);
  }
  return halo;
}

Plan plan(const Tensor& indptr, const Tensor& columns, const Tensor& row_offsets, const Tensor& col_offsets,
          std::string_view name) {
  const KeptResults kept;
  const Group group(name);
  const int64_t me = group.rank(), ranks = group.size();
  group.check_on_all(offsets_text(row_offsets, col_offsets), [&] {
    check_offsets("row_offsets", row_offsets, ranks);
    check_offsets("col_offsets", col_offsets, ranks);
    const int64_t rows = number_at(row_offsets, me + 1) - number_at(row_offsets, me);
    check_rows(indptr, columns, rows, number_at(col_offsets, ranks));
  });
  const std::vector<int64_t> offsets = numbers(col_offsets), ids = numbers(columns);
  const int64_t low = offsets[me], high = offsets[me + 1];
  const auto most = static_cast<int64_t>(ids.size()) + high - low;
  const auto type = index_type(indptr.scalar_type() == at::kLong, {most});
  const Tensor starts = indptr.to(type).contiguous(), labels = host_integers(columns.size(0), type);
  std::vector<int64_t> halo, recv;
  Tensor interior;
  with_index_type<void>(type, [&]<class, class I> {
    halo = relabel(ids, low, high, mutable_ptr<I>(labels));
    interior = interior_rows<I>(starts, labels, high - low);
  });
  for (int64_t r = 0, from = 0; r < ranks; ++r) {
    const auto to = std::lower_bound(halo.begin(), halo.end(), offsets[r + 1]) - halo.begin();
    recv.push_back(to - from), from = to;
  }
  const std::vector<int64_t> send = counts_of_others(group, recv);
  const Tensor send_rows = group.all_to_all(integers(halo), recv, send) - low;
  std::vector<int64_t> counts = {indptr.size(0) - 1, high - low};
  counts.insert(counts.end(), send.begin(), send.end());
  counts.insert(counts.end(), recv.begin(), recv.end());
  const Tensor runs =
      ops::runs(starts, labels, {}, {indptr.size(0) - 1, high - low + static_cast<int64_t>(halo.size())});
  return {{starts, labels, send_rows, interior, runs}, counts};
}

const Composites composites = Composites().def(
    "distributed_plan(Tensor indptr, Tensor columns, Tensor row_offsets, Tensor col_offsets, str group) -> "
    "(Tensor[] plan, int[] counts)",
    ops::distributed_plan);

}  // namespace

Plan ops::distributed_plan(const Tensor& indptr, const Tensor& columns, const Tensor& row_offsets,
                           const Tensor& col_offsets, std::string_view group) {
  const auto [tensors, counts] = plan(indptr.cpu(), columns.cpu(), row_offsets.cpu(), col_offsets.cpu(), group);
  return {on_device_of(indptr, tensors), counts};
}

}  // namespace gossamer
