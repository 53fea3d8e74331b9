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

void check(const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send, at::IntArrayRef recv,
           bool back, int64_t ranks) {
  check_integers("route", "out", out);
  check_integers("route", "into", into);
  for (const at::IntArrayRef counts : {send, recv}) {
    TORCH_CHECK_VALUE(static_cast<int64_t>(counts.size()) == ranks,
                      "route: send and recv must have one number for each of ", ranks, " ranks, not ", counts.size());
    for (const int64_t count : counts)
      TORCH_CHECK_VALUE(count >= 0, "route: a rank cannot be sent ", count, " entries");
  }
  TORCH_CHECK_VALUE(out.size(0) == total(send) && total(recv) <= into.size(0),
                    "route: out and into are not those of the numbers that are sent");
  const int64_t entries = back ? into.size(0) : own_entries(into, send, recv);
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.size(0) == entries, "route: values ", shape_text(values), " must have ",
                    entries, " rows");
}

Tensor forward(const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send, at::IntArrayRef recv,
               bool back, std::string_view name) {
  const int64_t entries = own_entries(into, send, recv);
  auto size = values.sym_sizes().vec();
  TORCH_CHECK_VALUE(!size.empty(), "route: values must have rows, and have no dimension");
  size[0] = back ? entries : into.size(0);
  if (values.is_meta()) return at::empty_symint(size, values.options());
  const Group group(name);
  group.check_on_all("route: values " + distributed::row_text(values),
                     [&] { check(values, out, into, send, recv, back, group.size()); });
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
