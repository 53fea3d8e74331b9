// SPDX-License-Identifier: BSD-3-Clause
// Rows by their original numbers, whoever owns them: what a checkpoint holds, so that another partition can read it.
#include <ATen/ATen.h>

#include <limits>
#include <vector>

#include "core/csr.h"
#include "core/op.h"
#include "distributed/data/original_order.h"
#include "distributed/exchange.h"

namespace gossamer::distributed {
namespace {

// Who sends which rows to whom, so that they come in the order of their keys.
struct ByKeys {
  Tensor out, into;  // sent in the order `out`; what comes has its place by `into`
  std::vector<int64_t> send, recv;

  ByKeys(const Tensor& keys, int64_t total, const Group& group) {
    const int64_t p = group.size();
    group.check_on_all("Rows: " + std::to_string(total) + " rows in all", [&] {
      TORCH_CHECK_TYPE(keys.scalar_type() == at::kLong && keys.dim() == 1 && keys.is_cpu(),
                       "Rows: keys must be a vector of int64 on the host");
      TORCH_CHECK_VALUE(total >= 0 && total <= std::numeric_limits<int64_t>::max() / (p + 1), "Rows: there cannot be ",
                        total, " rows in all");
    });
    out = keys.argsort();
    const Tensor sorted = keys.index_select(0, out);
    const Tensor bounds = (at::arange(p + 1, at::kLong) * total).floor_divide(p);
    const Tensor counts = at::searchsorted(sorted, bounds).diff();
    const std::vector<int64_t> ones(p, 1);
    const Tensor coming = group.all_to_all(counts, ones, ones);
    send.assign(ptr<int64_t>(counts), ptr<int64_t>(counts) + p);
    recv.assign(ptr<int64_t>(coming), ptr<int64_t>(coming) + p);
    const Tensor outside = sorted.lt(0).logical_or(sorted.ge(total));
    group.agree(outside.any().item<bool>() ? "Rows: a key is not in 0 … " + std::to_string(total - 1) : "");
    const Tensor came = group.all_to_all(sorted, send, recv);
    into = came.argsort();
    const int64_t begin = number_at(bounds, group.rank()), end = number_at(bounds, group.rank() + 1);
    const bool fits = came.size(0) == end - begin && at::equal(came.index_select(0, into), at::arange(begin, end));
    group.agree(fits ? "" : "Rows: the keys of all ranks are not 0, 1, 2, … once");
  }
};

}  // namespace

Tensor in_order_of_keys(const Tensor& t, const Tensor& keys, int64_t total, const std::string& name, bool back) {
  const Group group(name);
  const ByKeys plan(keys, total, group);
  const int64_t wanted = back ? plan.into.size(0) : keys.size(0);
  group.check_on_all("Rows: t " + row_text(t), [&] {
    TORCH_CHECK_VALUE(t.dim() >= 1 && t.size(0) == wanted, "Rows: t has shape ", shape_text(t), ", not ", wanted,
                      " rows");
    TORCH_CHECK_VALUE(t.is_cpu() && t.layout() == at::kStrided, "Rows: t must be dense and on the host");
  });
  if (!back) return group.all_to_all(t.index_select(0, plan.out), plan.send, plan.recv).index_select(0, plan.into);
  const Tensor came = at::empty_like(t).index_copy_(0, plan.into, t);
  const Tensor mine = group.all_to_all(came, plan.recv, plan.send);
  return at::empty_like(mine).index_copy_(0, plan.out, mine);
}

Tensor entry_keys(const Tensor& indptr, const Tensor& row_keys, int64_t rows, const std::string& name) {
  const Group group(name);
  const Tensor lengths = indptr.to(at::kLong).diff();
  const Tensor ordered = in_order_of_keys(lengths, row_keys, rows, name, /*back=*/false);
  const Tensor before = group.all_gather(ordered.sum()).slice(0, 0, group.rank()).sum();
  const Tensor begins = ordered.cumsum(0) - ordered + before;
  const Tensor begin = in_order_of_keys(begins, row_keys, rows, name, /*back=*/true);
  const Tensor entries = at::arange(number_at(indptr, lengths.size(0)), at::kLong);
  return (begin - indptr.slice(0, 0, -1)).repeat_interleave(lengths) + entries;
}

namespace {

Tensor ordered_op(const Tensor& t, const Tensor& keys, int64_t total, c10::string_view group, bool back) {
  return in_order_of_keys(t.detach(), keys.contiguous(), total, std::string(group), back);
}

Tensor entries_op(const Tensor& indptr, const Tensor& row_keys, int64_t rows, c10::string_view group) {
  Group(group).check_on_all("Rows of entries", [&] {
    check_integers("Rows", "indptr", indptr);
    TORCH_CHECK_VALUE(indptr.is_cpu() && row_keys.dim() == 1 && indptr.size(0) == row_keys.size(0) + 1,
                      "Rows: a key a row, on the host");
    const bool ascends = indptr.diff().ge(0).all().item<bool>();
    TORCH_CHECK_VALUE(number_at(indptr, 0) == 0 && ascends, "Rows: indptr must ascend from 0");
  });
  return entry_keys(indptr.contiguous(), row_keys.contiguous(), rows, std::string(group));
}

Tensor gathered_op(const Tensor& t, c10::string_view group) {
  const Group ranks(group);
  ranks.check_on_all(c10::str("gathered: t ", t.scalar_type(), " ", shape_text(t)), [&] {
    TORCH_CHECK_VALUE(t.is_cpu() && t.layout() == at::kStrided, "gathered: t must be dense and on the host");
  });
  return ranks.all_gather(t.contiguous());
}

const Composites composites =
    Composites()
        .def("distributed_gathered(Tensor t, str group) -> Tensor", gathered_op)
        .def("distributed_ordered(Tensor t, Tensor keys, int total, str group, bool back) -> Tensor", ordered_op)
        .def("distributed_entry_keys(Tensor indptr, Tensor row_keys, int rows, str group) -> Tensor", entries_op);

}  // namespace
}  // namespace gossamer::distributed
