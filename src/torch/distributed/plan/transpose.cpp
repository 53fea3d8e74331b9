// SPDX-License-Identifier: BSD-3-Clause
// The transpose's part of a plan: each cut entry is told to the owner of its column, once for a pattern. Its rows are
// sorted by the original row numbers, so that a sum over a column is that of one process.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>
#include <gossamer/kernels/spmm.h>

#include <numeric>

#include "core/host.h"
#include "core/op.h"
#include "distributed/exchange.h"
#include "distributed/plan/integers.h"

namespace gossamer {
namespace {

using distributed::Block;
using distributed::counts_of_others;
using distributed::Exchange;
using distributed::Group;
using distributed::integers;
using distributed::numbers;
using distributed::starts_of;
using Plan = std::tuple<std::vector<Tensor>, std::vector<int64_t>>;

// What a rank tells the owners of columns of its cut entries, and what it is told: one row an entry, in the order of
// its rows: {place among the rows of X that are sent, row, key of the row}.
struct Cut {
  std::vector<int64_t> send, send_rows, send_counts;  // by rank: entries, own rows that have them, how many those are
  std::vector<int64_t> entries, told;
};

template <class I>
Cut cut_entries(const Block& A, const Tensor& row_keys) {
  const std::vector<int64_t> starts = starts_of(A.recv), keys = numbers(row_keys);
  const auto ranks = static_cast<int64_t>(A.recv.size());
  std::vector<int64_t> owner(A.halo());
  for (int64_t r = 0; r < ranks; ++r) std::fill(owner.begin() + starts[r], owner.begin() + starts[r + 1], r);
  const I *start = ptr<I>(A.indptr), *column = ptr<I>(A.indices);
  Cut cut;
  cut.send.resize(ranks), cut.send_counts.resize(ranks);
  for (int64_t p = 0; p < A.entries(); ++p)
    if (column[p] >= A.owned) ++cut.send[owner[column[p] - A.owned]];
  std::vector<int64_t> at = starts_of(cut.send);
  cut.entries.resize(at.back()), cut.told.resize(3 * at.back());
  for (int64_t i = 0; i < A.rows; ++i)
    for (int64_t p = start[i]; p < start[i + 1]; ++p) {
      const int64_t h = column[p] - A.owned;
      if (h < 0) continue;
      const int64_t k = at[owner[h]]++;
      cut.entries[k] = p;
      cut.told[3 * k] = h - starts[owner[h]], cut.told[3 * k + 1] = i, cut.told[3 * k + 2] = keys[i];
    }
  const std::vector<int64_t> first = starts_of(cut.send);
  for (int64_t r = 0; r < ranks; ++r)
    for (int64_t k = first[r]; k < first[r + 1]; ++k) {
      const int64_t row = cut.told[3 * k + 1];
      if (k > first[r] && row == cut.told[3 * (k - 1) + 1]) continue;
      cut.send_rows.push_back(row), ++cut.send_counts[r];
    }
  return cut;
}

// Rows of A that have entries in own columns: the own ones, then those of others, which begin where the row changes.
struct Sources {
  std::vector<int64_t> keys, first, recv;  // of all; where the entries of others begin, in the order in which they came
};

Sources sources(const std::vector<int64_t>& told, const std::vector<int64_t>& came, const Tensor& row_keys) {
  Sources of{numbers(row_keys), {}, std::vector<int64_t>(came.size())};
  const std::vector<int64_t> starts = starts_of(came);
  for (size_t r = 0; r < came.size(); ++r)
    for (int64_t k = starts[r]; k < starts[r + 1]; ++k) {
      if (k > starts[r] && told[3 * k + 1] == told[3 * (k - 1) + 1]) continue;
      of.keys.push_back(told[3 * k + 2]), of.first.push_back(k), ++of.recv[r];
    }
  of.first.push_back(starts.back());
  return of;
}

// The counting sort of a transpose, with the rows in the order of their keys.
template <class I>
void transpose_block(const Block& A, const Sources& rows, const std::vector<int64_t>& columns, I* indptr, I* indices,
                     I* into) {
  const I *start = ptr<I>(A.indptr), *column = ptr<I>(A.indices);
  std::fill(indptr, indptr + A.owned + 1, I{0});
  const auto each = [&](int64_t row, const auto& f) {
    if (row < A.rows) {
      for (int64_t p = start[row]; p < start[row + 1]; ++p)
        if (column[p] < A.owned) f(column[p], p);
    } else {
      for (int64_t k = rows.first[row - A.rows]; k < rows.first[row - A.rows + 1]; ++k) f(columns[k], A.entries() + k);
    }
  };
  for (size_t row = 0; row < rows.keys.size(); ++row)
    each(static_cast<int64_t>(row), [&](int64_t j, int64_t) { ++indptr[j + 1]; });
  std::partial_sum(indptr, indptr + A.owned + 1, indptr);
  for (const int64_t row : distributed::order_of(rows.keys))
    each(row, [&](int64_t j, int64_t entry) {
      const I q = indptr[j]++;
      indices[q] = static_cast<I>(row), into[q] = static_cast<I>(entry);
    });
  // Every start has moved to its end, which is the next column's start: shift back by one.
  std::copy_backward(indptr, indptr + A.owned, indptr + A.owned + 1);
  indptr[0] = 0;
}

// The first key before which the rows of all ranks have at least so much work, which is entries and rows: where one
// process cuts the rows into parts of equal work (row_at of kernels/exec.h).
std::vector<int64_t> cuts(const Group& group, const std::vector<int64_t>& keys, const std::vector<int64_t>& work,
                          const std::vector<int64_t>& wanted) {
  const std::vector<int64_t> order = distributed::order_of(keys), before = [&] {
    std::vector<int64_t> sums = {0};
    for (const int64_t i : order) sums.push_back(sums.back() + work[i]);
    return sums;
  }();
  const auto work_before = [&](int64_t key) {
    const auto found = std::partition_point(order.begin(), order.end(), [&](int64_t i) { return keys[i] < key; });
    return before[found - order.begin()];
  };
  Tensor last = at::full({1}, keys.empty() ? 0 : keys[order.back()] + 1, at::kLong);
  group.max_(last);
  std::vector<int64_t> low(wanted.size(), 0), high(wanted.size(), last.item<int64_t>());
  while (low != high) {  // all ranks bisect alike
    std::vector<int64_t> middle(wanted.size()), sums;
    for (size_t k = 0; k < wanted.size(); ++k) {
      middle[k] = low[k] + (high[k] - low[k]) / 2;
      sums.push_back(work_before(middle[k]));
    }
    Tensor all = integers(sums);
    group.sum_(all);
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (low[k] == high[k]) continue;
      if (all.const_data_ptr<int64_t>()[k] < wanted[k])
        low[k] = middle[k] + 1;
      else
        high[k] = middle[k];
    }
  }
  return low;
}

// Of each row of A that Aᵀ's block has, the quarter of all work that it belongs to; and {entries, columns} of all
// ranks. Zeros if the matrix is too small, or too empty, for one process to cut it.
std::pair<Tensor, std::vector<int64_t>> quarters_of(const Group& group, const Block& A,
                                                    const std::vector<int64_t>& keys) {
  Tensor totals = integers({A.entries(), A.owned, A.rows});
  group.sum_(totals);
  const std::vector<int64_t> all = numbers(totals);
  Tensor quarters = at::zeros({static_cast<int64_t>(keys.size())}, at::kByte);
  Csr<double, int64_t> whole;
  whole.nnz = all[0], whole.cols = all[1];
  if (kernels::scatter_parts(whole) == 1) return {quarters, {all[0], all[1]}};
  const std::vector<int64_t> own(keys.begin(), keys.begin() + A.rows), starts = numbers(A.indptr);
  std::vector<int64_t> work, wanted;
  for (int64_t i = 0; i < A.rows; ++i) work.push_back(starts[i + 1] - starts[i] + 1);
  for (int64_t k = 1; k < 4; ++k) wanted.push_back((all[0] + all[2]) * k / 4);
  const std::vector<int64_t> first = cuts(group, own, work, wanted);
  for (size_t i = 0; i < keys.size(); ++i)
    quarters.mutable_data_ptr<uint8_t>()[i] =
        static_cast<uint8_t>(std::upper_bound(first.begin(), first.end(), keys[i]) - first.begin());
  return {quarters, {all[0], all[1]}};
}

void append(std::vector<int64_t>& list, at::IntArrayRef more) {
  list.insert(list.end(), more.begin(), more.end());
}

Plan with_transpose(std::vector<Tensor> tensors, at::IntArrayRef counts, const Tensor& row_keys,
                    std::string_view name) {
  const KeptResults kept;
  const Group group(name);
  const auto check = [&](const Exchange& checked) {
    TORCH_CHECK_VALUE(!checked.has_transpose(), "distributed_transpose: the plan has a transpose");
    const int64_t rows = checked.block(false).rows;
    check_integers("distributed_transpose", "row_keys", row_keys);
    TORCH_CHECK_VALUE(row_keys.size(0) == rows, "distributed_transpose: row_keys has ", row_keys.size(0),
                      " numbers, but this rank has ", rows, " rows");
    TORCH_CHECK_VALUE(rows == 0 || row_keys.min().item<int64_t>() >= 0, "distributed_transpose: a key is negative");
  };
  const Exchange exchange =
      distributed::agreed(group, "distributed_transpose", tensors, counts, "distributed_transpose", check);
  const Block& A = exchange.block(false);
  const auto type = A.indptr.scalar_type();
  Plan result;
  with_index_type<void>(type, [&]<class, class I> {
    const Cut cut = cut_entries<I>(A, row_keys);
    const std::vector<int64_t> came = counts_of_others(group, cut.send);
    const Tensor told = integers(cut.told).view({-1, 3});
    const std::vector<int64_t> heard = numbers(group.all_to_all(told, cut.send, came).view({-1}));
    const Sources rows = sources(heard, came, row_keys);
    // The place that was told is one among the rows of X that go to the teller.
    const std::vector<int64_t> sent = starts_of(A.send), from = starts_of(came), places = numbers(A.send_rows);
    std::vector<int64_t> columns(from.back());
    for (size_t r = 0; r < came.size(); ++r)
      for (int64_t k = from[r]; k < from[r + 1]; ++k) columns[k] = places.at(sent[r] + heard[3 * k]);
    const int64_t entries = A.entries() - static_cast<int64_t>(cut.entries.size()) + from.back();
    TORCH_CHECK_VALUE(
        index_type(false, {A.entries() + from.back(), A.rows + static_cast<int64_t>(rows.first.size())}) == at::kInt ||
            type == at::kLong,
        "distributed_transpose: ", entries, " entries do not fit int32; make the matrix with int64");
    const Tensor indptr = host_integers(A.owned + 1, type), indices = host_integers(entries, type),
                 into = host_integers(entries, type);
    transpose_block<I>(A, rows, columns, mutable_ptr<I>(indptr), mutable_ptr<I>(indices), mutable_ptr<I>(into));
    const auto labels = static_cast<int64_t>(rows.keys.size());
    const Tensor runs = ops::runs(indptr, indices, into, {A.owned, labels});
    const auto [quarters, totals] = quarters_of(group, A, rows.keys);
    for (const Tensor& t :
         {indptr, indices, integers(cut.send_rows), distributed::interior_rows<I>(indptr, indices, A.rows), runs,
          integers(cut.entries), into, quarters})
      tensors.push_back(t);
    std::vector<int64_t> all = counts.vec();
    for (const auto& more : {cut.send_counts, rows.recv, cut.send, came, totals}) append(all, more);
    result = {tensors, all};
  });
  return result;
}

// The way back of a route is the route of the transpose: what came is sent, what was sent comes.
template <class I>
void invert(const Tensor& out, const Tensor& into, const Tensor& out_back, const Tensor& into_back) {
  const int64_t entries = into_back.size(0);
  for (int64_t q = 0; q < into.size(0); ++q) {
    const int64_t from = ptr<I>(into)[q];
    if (from < entries)
      mutable_ptr<I>(into_back)[from] = static_cast<I>(q);
    else
      mutable_ptr<int64_t>(out_back)[from - entries] = q;
  }
  for (int64_t k = 0; k < out.size(0); ++k)
    mutable_ptr<I>(into_back)[ptr<int64_t>(out)[k]] = static_cast<I>(into.size(0) + k);
}

Plan swap(TensorList plan, at::IntArrayRef counts) {
  const KeptResults kept;
  const Exchange exchange("distributed_swap", plan, counts);
  const auto& route = exchange.route("distributed_swap");
  const Tensor out = route.out.cpu(), into = route.into.cpu();
  const auto came = std::accumulate(route.recv.begin(), route.recv.end(), int64_t{0});
  const Tensor out_back = host_integers(came),
               into_back = host_integers(exchange.block(false).entries(), into.scalar_type());
  with_index_type<void>(into.scalar_type(), [&]<class, class I> { invert<I>(out, into, out_back, into_back); });
  constexpr auto tensors_of = distributed::block_tensors;
  std::vector<Tensor> tensors(plan.begin() + tensors_of, plan.begin() + 2 * tensors_of);
  tensors.insert(tensors.end(), plan.begin(), plan.begin() + tensors_of);
  const Tensor quarters = at::zeros({exchange.block(true).rows + exchange.block(false).halo()}, at::kByte);
  for (const Tensor& t : {out_back, into_back, quarters}) tensors.push_back(t.to(plan[0].device()));
  std::vector<int64_t> all = {counts[1], counts[0]};
  const Block &A = exchange.block(false), &T = exchange.block(true);
  for (const auto& more : {T.send, T.recv, A.send, A.recv, route.recv, route.send}) append(all, more);
  append(all, {0, 0});  // one process does not cut the rows of what is a matrix of its own
  return {tensors, all};
}

const Composites composites =
    Composites()
        .def(
            "distributed_transpose(Tensor[] plan, int[] counts, Tensor row_keys, str group) -> "
            "(Tensor[] plan, int[] counts)",
            ops::distributed_transpose)
        .def("distributed_swap(Tensor[] plan, int[] counts) -> (Tensor[] plan, int[] counts)", ops::distributed_swap);

}  // namespace

Plan ops::distributed_transpose(TensorList plan, at::IntArrayRef counts, const Tensor& row_keys,
                                std::string_view group) {
  const auto [tensors, all] = with_transpose(on_host(plan), counts, row_keys.cpu(), group);
  return {distributed::on_device_of(plan[0], tensors), all};
}

Plan ops::distributed_swap(TensorList plan, at::IntArrayRef counts) {
  return swap(plan, counts);
}

}  // namespace gossamer
