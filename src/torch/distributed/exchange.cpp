// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/exchange.h"

#include <ATen/ops/index_select.h>

#include <numeric>
#include <sstream>

namespace gossamer::distributed {

namespace {

constexpr size_t block_tensors = 4, all_tensors = 2 * block_tensors + 2;

Block checked_block(const char* op, TensorList tensors, int64_t rows, int64_t owned, IntArrayRef send,
                    IntArrayRef recv) {
  Block B{rows, owned, tensors[0], tensors[1], tensors[2], tensors[3], send, recv};
  check_integers(op, "indptr", B.indptr);
  check_integers(op, "indices", B.indices);
  TORCH_CHECK_TYPE(B.indptr.scalar_type() == B.indices.scalar_type(), op, ": indices are ", B.indices.scalar_type(),
                   " but indptr is ", B.indptr.scalar_type());
  TORCH_CHECK_VALUE(B.indptr.size(0) == rows + 1, op, ": indptr has ", B.indptr.size(0), " entries but a block of ",
                    rows, " rows needs ", rows + 1);
  TORCH_CHECK_VALUE(B.send_rows.scalar_type() == at::kLong && B.send_rows.dim() == 1 &&
                        B.send_rows.size(0) == std::accumulate(send.begin(), send.end(), int64_t{0}),
                    op, ": the plan sends ", B.send_rows.size(0), " rows, which are not those that are counted");
  TORCH_CHECK_VALUE(B.interior.scalar_type() == at::kLong && B.interior.dim() == 1 && B.interior.size(0) % 2 == 0, op,
                    ": the interior rows must be ranges, int64");
  B.indptr = B.indptr.contiguous(), B.indices = B.indices.contiguous(), B.interior = B.interior.contiguous();
  if (has_numbers(B.indptr)) {
    const int64_t entries = number_at(B.indptr, rows);
    TORCH_CHECK_VALUE(entries == B.entries(), op, ": indptr ends at ", entries, " but there are ", B.entries(),
                      " indices");
  }
  return B;
}

}  // namespace

int64_t Block::halo() const {
  return std::accumulate(recv.begin(), recv.end(), int64_t{0});
}

Exchange::Exchange(const char* op, TensorList plan, IntArrayRef counts) : transposed_(plan.size() == all_tensors) {
  TORCH_CHECK_VALUE(transposed_ || plan.size() == block_tensors, op, ": a plan has ", block_tensors, " or ",
                    all_tensors, " tensors, not ", plan.size());
  const size_t lists = transposed_ ? 6 : 2;
  TORCH_CHECK_VALUE(counts.size() > 2 && (counts.size() - 2) % lists == 0, op, ": a plan has no ", counts.size(),
                    " counts");
  const size_t p = (counts.size() - 2) / lists;
  for (const int64_t count : counts) TORCH_CHECK_VALUE(count >= 0, op, ": the plan counts ", count, " rows");
  const auto list = [&](size_t k) { return counts.slice(2 + k * p, p); };
  const int64_t rows = counts[0], cols = counts[1];
  blocks_[0] = checked_block(op, plan.slice(0, block_tensors), rows, cols, list(0), list(1));
  if (!transposed_) return;
  blocks_[1] = checked_block(op, plan.slice(block_tensors, block_tensors), cols, rows, list(2), list(3));
  route_ = {plan[2 * block_tensors], plan[2 * block_tensors + 1], list(4), list(5)};
  check_integers(op, "the route", route_.out);
  check_integers(op, "the route", route_.into);
  TORCH_CHECK_VALUE(route_.into.size(0) == blocks_[1].entries(), op, ": the route is that of another matrix");
}

const Route& Exchange::route(const char* op) const {
  TORCH_CHECK_VALUE(transposed_, op, ": the plan lacks the transpose");
  return route_;
}

std::string row_text(const Tensor& t) {
  std::ostringstream text;
  text << c10::getDtypeNames(t.scalar_type()).first << " (…";
  for (int64_t k = 1; k < t.dim(); ++k) text << ", " << t.size(k);
  text << ')';
  return text.str();
}

Pending cut_values_begin(const Group& group, const Route& route, const Tensor& values) {
  return group.all_to_all_begin(values.index_select(0, route.out), route.send, route.recv);
}

}  // namespace gossamer::distributed
