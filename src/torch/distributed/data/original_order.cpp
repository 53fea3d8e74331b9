// SPDX-License-Identifier: BSD-3-Clause
// Rows by their original numbers, whoever owns them: what a checkpoint holds, so that another partition can read it.
#include <ATen/ATen.h>

#include <vector>

#include "core/csr.h"
#include "core/op.h"
#include "distributed/data/original_order.h"
#include "distributed/group.h"

namespace gossamer::distributed {
namespace {

// Who sends which rows to whom, so that they come in the order of their keys.
struct ByKeys {
  Tensor out, into;  // sent in the order `out`; what comes has its place by `into`
  std::vector<int64_t> send, recv;

  ByKeys(const Tensor& keys, int64_t total, const Group& group) : out(keys.argsort()) {
    const int64_t p = group.size();
    group.agree(total < 0 ? "Rows: " + std::to_string(total) + " rows in all" : "");
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
  group.agree(t.dim() >= 1 && t.size(0) == wanted
                  ? ""
                  : "Rows: t has shape " + shape_text(t) + ", not " + std::to_string(wanted) + " rows");
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
  TORCH_CHECK_TYPE(keys.scalar_type() == at::kLong && keys.dim() == 1, "Rows: keys must be a vector of int64");
  return in_order_of_keys(t.detach(), keys.contiguous(), total, std::string(group), back);
}

Tensor entries_op(const Tensor& indptr, const Tensor& row_keys, int64_t rows, c10::string_view group) {
  check_integers("Rows", "indptr", indptr);
  TORCH_CHECK_VALUE(
      row_keys.scalar_type() == at::kLong && row_keys.dim() == 1 && indptr.size(0) == row_keys.size(0) + 1,
      "Rows: a key a row, int64");
  return entry_keys(indptr.contiguous(), row_keys.contiguous(), rows, std::string(group));
}

Tensor gathered_op(const Tensor& t, c10::string_view group) {
  return Group(group).all_gather(t.contiguous());
}

const Composites composites =
    Composites()
        .def("distributed_gathered(Tensor t, str group) -> Tensor", gathered_op)
        .def("distributed_ordered(Tensor t, Tensor keys, int total, str group, bool back) -> Tensor", ordered_op)
        .def("distributed_entry_keys(Tensor indptr, Tensor row_keys, int rows, str group) -> Tensor", entries_op);

}  // namespace
}  // namespace gossamer::distributed
