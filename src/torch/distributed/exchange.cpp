// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/exchange.h"

#include "distributed/plan/contents.h"

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <sstream>

namespace gossamer::distributed {

namespace {

// A plan is frozen: what traces an op takes its lengths for constants.
int64_t length(const Tensor& t) {
  return t.sym_size(0).guard_int(__FILE__, __LINE__);
}

Block checked_block(const char* op, TensorList tensors, int64_t rows, int64_t owned, IntArrayRef send,
                    IntArrayRef recv) {
  Block B{rows, owned, tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], send, recv};
  check_integers(op, "indptr", B.indptr);
  check_integers(op, "indices", B.indices);
  TORCH_CHECK_TYPE(B.indptr.scalar_type() == B.indices.scalar_type(), op, ": indices are ", B.indices.scalar_type(),
                   " but indptr is ", B.indptr.scalar_type());
  TORCH_CHECK_VALUE(length(B.indptr) == rows + 1, op, ": indptr has ", length(B.indptr), " entries but a block of ",
                    rows, " rows needs ", rows + 1);
  TORCH_CHECK_VALUE(B.send_rows.scalar_type() == at::kLong && B.send_rows.dim() == 1 &&
                        length(B.send_rows) == std::accumulate(send.begin(), send.end(), int64_t{0}),
                    op, ": the plan sends ", length(B.send_rows), " rows, which are not those that are counted");
  TORCH_CHECK_VALUE(B.interior.scalar_type() == at::kLong && B.interior.dim() == 1 && length(B.interior) % 2 == 0, op,
                    ": the interior rows must be ranges, int64");
  check_integers(op, "runs", B.runs);
  B.runs = B.runs.contiguous();
  TORCH_CHECK_TYPE(B.runs.scalar_type() == B.indptr.scalar_type(), op, ": runs are ", B.runs.scalar_type());
  B.indptr = B.indptr.contiguous(), B.indices = B.indices.contiguous(), B.interior = B.interior.contiguous();
  return B;
}

}  // namespace

int64_t Block::entries() const {
  return length(indices);
}

int64_t Block::halo() const {
  return std::accumulate(recv.begin(), recv.end(), int64_t{0});
}

Exchange::Exchange(const char* op, TensorList plan, IntArrayRef counts, int64_t ranks)
    : transposed_(plan.size() == all_tensors) {
  TORCH_CHECK_VALUE(transposed_ || plan.size() == block_tensors, op, ": a plan has ", block_tensors, " or ",
                    all_tensors, " tensors, not ", plan.size());
  const size_t lists = transposed_ ? 6 : 2, numbers = transposed_ ? 4 : 2;
  TORCH_CHECK_VALUE(counts.size() > numbers && (counts.size() - numbers) % lists == 0, op, ": a plan has no ",
                    counts.size(), " counts");
  const size_t p = (counts.size() - numbers) / lists;
  TORCH_CHECK_VALUE(ranks == 0 || static_cast<int64_t>(p) == ranks, op, ": the plan is one of ", p,
                    " ranks, but the group has ", ranks);
  for (const Tensor& t : plan)
    TORCH_CHECK_VALUE(t.device() == plan[0].device(), op, ": a tensor of the plan is on ", t.device(), ", others on ",
                      plan[0].device());
  check_counts(op, counts);
  blocks_[0] =
      checked_block(op, plan.slice(0, block_tensors), counts[0], counts[1], counts.slice(2, p), counts.slice(2 + p, p));
  if (transposed_) take_transpose(op, plan, counts, p);
  check_once(plan, counts, [&] { check_contents(op, *this); });
}

void Exchange::take_transpose(const char* op, TensorList plan, IntArrayRef counts, size_t p) {
  const auto list = [&](size_t k) { return counts.slice(2 + k * p, p); };
  const int64_t rows = counts[0], cols = counts[1];
  blocks_[1] = checked_block(op, plan.slice(block_tensors, block_tensors), cols, rows, list(2), list(3));
  TORCH_CHECK_TYPE(blocks_[0].indptr.scalar_type() == blocks_[1].indptr.scalar_type(), op, ": indptr is ",
                   blocks_[0].indptr.scalar_type(), " but that of the transpose is ", blocks_[1].indptr.scalar_type());
  const TensorList rest = plan.slice(2 * block_tensors);
  route_ = {rest[0], rest[1], list(4), list(5)};
  check_integers(op, "the route", route_.out);
  check_integers(op, "the route", route_.into);
  TORCH_CHECK_TYPE(route_.into.scalar_type() == blocks_[1].indptr.scalar_type(), op, ": the route is ",
                   route_.into.scalar_type(), ", not as indptr is");
  TORCH_CHECK_VALUE(length(route_.into) == blocks_[1].entries() && route_.out.scalar_type() == at::kLong &&
                        length(route_.out) == std::accumulate(route_.send.begin(), route_.send.end(), int64_t{0}),
                    op, ": the route is that of another matrix");
  route_.into = route_.into.contiguous();
  quarters_ = {rest[2].contiguous(), counts[2 + 6 * p], counts[3 + 6 * p]};
  TORCH_CHECK_VALUE(
      rest[2].scalar_type() == at::kByte && rest[2].dim() == 1 && length(rest[2]) == rows + blocks_[1].halo(), op,
      ": there must be one quarter for each row");
}

int64_t Exchange::balance(const Group& group) const {
  int64_t sum = group.balance(blocks_[0].send, blocks_[0].recv);
  if (transposed_) sum += group.balance(blocks_[1].send, blocks_[1].recv) + group.balance(route_.send, route_.recv);
  return sum;
}

const Route& Exchange::route(const char* op) const {
  TORCH_CHECK_VALUE(transposed_, op, ": the plan lacks the transpose");
  return route_;
}

bool has_contents(TensorList tensors) {
  return std::none_of(tensors.begin(), tensors.end(),
                      [](const Tensor& t) { return t.is_meta() || at::isTensorSubclassLike(t); });
}

void check_device(const char* op, const Tensor& t, const Block& A) {
  TORCH_CHECK_VALUE(t.device() == A.indptr.device(), op, ": an operand is on ", t.device(), " but the matrix is on ",
                    A.indptr.device());
  TORCH_CHECK_TYPE(t.layout() == at::kStrided, op, ": an operand must be dense, not ", t.layout());
  const bool small = t.is_floating_point() && t.element_size() < 2;
  TORCH_CHECK_TYPE(!small, op, ": no kernel for ", t.scalar_type());
}

void check_counts(const char* op, IntArrayRef counts) {
  const auto most =
      std::numeric_limits<int64_t>::max() / 8 / std::max<int64_t>(counts.size(), 1);  // sums do not overflow
  for (const int64_t count : counts)
    TORCH_CHECK_VALUE(count >= 0 && count <= most, op, ": the plan counts ", count, " rows");
}

void check_halo(const char* op, const Tensor& halo, const char* name, const Tensor& X, const Block& A) {
  TORCH_CHECK_VALUE(
      halo.dim() == X.dim() && halo.sym_size(0) == A.halo() && halo.sym_sizes().slice(1) == X.sym_sizes().slice(1), op,
      ": the halo ", shape_text(halo), " is not that of ", name, " ", shape_text(X));
  check_same_dtype(op, "the halo", halo, name, X);
  check_device(op, halo, A);
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
