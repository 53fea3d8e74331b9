// SPDX-License-Identifier: BSD-3-Clause
// Entry q of Aᵀ's block is one of this rank's own entries, or a cut one that came from the owner of its row:
//
//   w[q] = v[into[q]],  or  came[into[q] - n]  from into[q] = n, the number of own entries, on
//
// A permutation of the entries of all ranks: its adjoint is the way back, and that one's the way out.
#include <ATen/ATen.h>
#include <gossamer/distributed.h>

#include <numeric>

#include "core/batch.h"
#include "core/differentiable.h"
#include "core/op.h"
#include "distributed/exchange.h"
#include "distributed/plan/contents.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

using distributed::Group;

int64_t total(at::IntArrayRef counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Of A: what stays, and what is sent. (Of Aᵀ: what stays, and what is received.)
int64_t own_entries(const Tensor& into, at::IntArrayRef send, at::IntArrayRef recv) {
  return into.size(0) - total(recv) + total(send);
}

int64_t check(const Group& group, const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send,
              at::IntArrayRef recv, bool back) {
  const int64_t ranks = group.size();
  check_integers("route", "out", out);
  check_integers("route", "into", into);
  for (const at::IntArrayRef counts : {send, recv}) {
    TORCH_CHECK_VALUE(static_cast<int64_t>(counts.size()) == ranks,
                      "route: send and recv must have one number for each of ", ranks, " ranks, not ", counts.size());
    distributed::check_counts("route", counts);
  }
  TORCH_CHECK_VALUE(out.size(0) == total(send) && total(recv) <= into.size(0),
                    "route: out and into are not those of the numbers that are sent");
  const int64_t entries = back ? into.size(0) : own_entries(into, send, recv);
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.size(0) == entries, "route: values ", shape_text(values), " must have ",
                    entries, " rows");
  TORCH_CHECK_TYPE(values.layout() == at::kStrided, "route: values must be dense, not ", values.layout());
  for (const Tensor& t : {out, into})
    TORCH_CHECK_VALUE(t.device() == values.device(), "route: a part of the plan is on ", t.device(),
                      " but the values are on ", values.device());
  auto counts = send.vec();
  counts.insert(counts.end(), recv.begin(), recv.end());
  distributed::check_once({out, into}, counts, [&] {
    distributed::check_route("route", {out.cpu(), into.cpu(), send, recv}, own_entries(into, send, recv));
  });
  return group.balance(send, recv);
}

Tensor forward(const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send, at::IntArrayRef recv,
               bool back, std::string_view name) {
  if (values.is_meta()) {
    auto size = values.sym_sizes().vec();
    TORCH_CHECK_VALUE(!size.empty(), "route: values must have rows, and have no dimension");
    size[0] = back ? own_entries(into, send, recv) : into.size(0);
    return at::empty_symint(size, values.options());
  }
  const Group group(name);
  group.check_on_all("route: values " + distributed::row_text(values),
                     [&] { return check(group, values, out, into, send, recv, back); });
  const int64_t entries = own_entries(into, send, recv);
  if (!back) {
    const Tensor came = distributed::cut_values_begin(group, {out, into, send, recv}, values).wait();
    return at::cat({values, came}).index_select(0, into);
  }
  auto rows = values.sizes().vec();
  rows[0] = entries + total(recv);
  Tensor both = at::empty(rows, values.options());
  both.index_copy_(0, into.to(at::kLong), values);
  const Tensor came = group.all_to_all(both.narrow(0, entries, total(recv)), recv, send);
  return both.narrow(0, 0, entries).index_copy(0, out.to(at::kLong), came);
}

Tensor autograd(const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send, at::IntArrayRef recv,
                bool back, std::string_view name) {
  return differentiable(
      "route", {values}, [&](const variable_list& in) { return ops::route(in[0], out, into, send, recv, back, name); },
      [out, into, send = send.vec(), recv = recv.vec(), back, name = std::string(name)](
          const Tensor& G, const variable_list&, const Tensor&, const Wanted&) {
        return variable_list{ops::route(G, out, into, send, recv, !back, name)};
      });
}

Tensor batched(const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send, at::IntArrayRef recv,
               bool back, std::string_view name) {
  const Batch batch("route", {out, into}, {values});
  return batch.wrap(ops::route(batch.at(values, 1), out, into, send, recv, back, name), 1);
}

const Op<decltype(ops::route)> op{{
    .schema = "route(Tensor values, Tensor out, Tensor into, int[] send, int[] recv, bool back, str group) -> Tensor",
    .forward = forward,
    .autograd = autograd,
    .batched = batched,
}};

}  // namespace

Tensor ops::route(const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send,
                  at::IntArrayRef recv, bool back, std::string_view group) {
  return op(values, out, into, send, recv, back, group);
}

}  // namespace gossamer
