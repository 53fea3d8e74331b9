// SPDX-License-Identifier: BSD-3-Clause
// halo:      h = the rows of x that this rank needs from others        dx = halo_sum(g)
// halo_sum:  x[index[k]] += row k of what comes back                   dg = halo(x)
#include <ATen/ATen.h>
#include <gossamer/distributed.h>

#include <numeric>

#include "core/batch.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"
#include "distributed/exchange.h"
#include "distributed/plan/contents.h"

namespace gossamer {
namespace {

using distributed::Group;

int64_t total(at::IntArrayRef counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

std::vector<SymInt> with_rows(const Tensor& t, int64_t rows) {
  auto size = t.sym_sizes().vec();
  size[0] = rows;
  return size;
}

// Of the rows of x, or of what comes back to them, `rows` of them in all.
void check(const char* op, const Tensor& x, int64_t rows, const Tensor& index, at::IntArrayRef send,
           at::IntArrayRef recv, int64_t ranks) {
  TORCH_CHECK_VALUE(static_cast<int64_t>(send.size()) == ranks && static_cast<int64_t>(recv.size()) == ranks, op,
                    ": send and recv must have one number for each of ", ranks, " ranks");
  distributed::check_counts(op, send);
  distributed::check_counts(op, recv);
  check_integers(op, "index", index);
  TORCH_CHECK_TYPE(x.layout() == at::kStrided, op, ": rows must be dense, not ", x.layout());
  TORCH_CHECK_VALUE(index.device() == x.device(), op, ": index is on ", index.device(), " but the rows are on ",
                    x.device());
  TORCH_CHECK_VALUE(index.size(0) == total(send), op, ": index has ", index.size(0), " rows but ", total(send),
                    " are sent");
  TORCH_CHECK_VALUE(rows >= 0, op, ": there cannot be ", rows, " rows");
  distributed::check_once({index}, {rows}, [&] {
    TORCH_CHECK_INDEX(index.numel() == 0 || (index.min().item<int64_t>() >= 0 && index.max().item<int64_t>() < rows),
                      op, ": index is outside the ", rows, " rows");
  });
}

Tensor halo_forward(const Tensor& x, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv,
                    std::string_view name) {
  TORCH_CHECK_VALUE(x.dim() >= 1, "halo: x must have rows, and has no dimension");
  if (x.is_meta()) return at::empty_symint(with_rows(x, total(recv)), x.options());
  const Group group(name);
  group.check_on_all("halo: x " + distributed::row_text(x), [&] {
    check("halo", x, x.size(0), index, send, recv, group.size());
    return group.balance(send, recv);
  });
  return group.all_to_all(x.index_select(0, index), send, recv);
}

Tensor halo_autograd(const Tensor& x, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv,
                     std::string_view name) {
  return differentiable(
      "halo", {x}, [&](const variable_list& in) { return ops::halo(in[0], index, send, recv, name); },
      [index, send = send.vec(), recv = recv.vec(), name = std::string(name)](const Tensor& G, const variable_list& in,
                                                                              const Tensor&, const Wanted&) {
        return variable_list{ops::halo_sum(G, index, send, recv, in[0].size(0), name)};
      });
}

Tensor halo_batched(const Tensor& x, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv,
                    std::string_view name) {
  const Batch batch("halo", {index}, {x});
  return batch.wrap(ops::halo(batch.at(x, 1), index, send, recv, name), 1);
}

// Serially and in order: the same bits for every number of threads. 16-bit rows are added up in float32.
template <class T, class I>
void add_rows(const Tensor& rows, const Tensor& index, const Tensor& sum) {
  const int64_t width = rows.size(1);
  const T* row = ptr<T>(rows);
  T* to = mutable_ptr<T>(sum);
  for (int64_t k = 0; k < rows.size(0); ++k)
    for (int64_t c = 0; c < width; ++c) to[ptr<I>(index)[k] * width + c] += row[k * width + c];
}

Tensor sum_of_rows(const Tensor& rows, const Tensor& index, int64_t count) {
  if (rows.is_complex()) return at::view_as_complex(sum_of_rows(at::view_as_real(rows), index, count));
  const auto type = rows.is_floating_point() ? sum_type(rows) : rows.scalar_type();
  const bool by_torch = !rows.is_cpu() || !rows.is_floating_point();
  Tensor sum = at::zeros_symint(with_rows(rows, count), rows.options().dtype(type));
  if (by_torch) return sum.index_add_(0, index, rows.to(type)).to(rows.scalar_type());
  const Tensor added = rows.to(type).contiguous().view({rows.size(0), c10::multiply_integers(rows.sizes().slice(1))});
  with_types("halo_sum", type, index.scalar_type(), [&]<class T, class I> {
    if constexpr (std::same_as<T, Sum<T>>)
      if (rows.numel() > 0) add_rows<T, I>(added, index.contiguous(), sum);
  });
  return sum.to(rows.scalar_type());
}

Tensor sum_forward(const Tensor& g, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv, int64_t rows,
                   std::string_view name) {
  TORCH_CHECK_VALUE(g.dim() >= 1, "halo_sum: g must have rows, and has no dimension");
  if (g.is_meta()) return at::empty_symint(with_rows(g, rows), g.options());
  const Group group(name);
  group.check_on_all("halo_sum: g " + distributed::row_text(g), [&] {
    check("halo_sum", g, rows, index, send, recv, group.size());
    TORCH_CHECK_VALUE(g.size(0) == total(recv), "halo_sum: g has ", g.size(0), " rows, not ", total(recv));
    return group.balance(send, recv);
  });
  return sum_of_rows(group.all_to_all(g, recv, send), index, rows);
}

Tensor sum_autograd(const Tensor& g, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv, int64_t rows,
                    std::string_view name) {
  return differentiable(
      "halo_sum", {g}, [&](const variable_list& in) { return ops::halo_sum(in[0], index, send, recv, rows, name); },
      [index, send = send.vec(), recv = recv.vec(), name = std::string(name)](const Tensor& G, const variable_list&,
                                                                              const Tensor&, const Wanted&) {
        return variable_list{ops::halo(G, index, send, recv, name)};
      });
}

Tensor sum_batched(const Tensor& g, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv, int64_t rows,
                   std::string_view name) {
  const Batch batch("halo_sum", {index}, {g});
  return batch.wrap(ops::halo_sum(batch.at(g, 1), index, send, recv, rows, name), 1);
}

const Op<decltype(ops::halo)> halo_op{{
    .schema = "halo(Tensor x, Tensor index, int[] send, int[] recv, str group) -> Tensor",
    .forward = halo_forward,
    .autograd = halo_autograd,
    .batched = halo_batched,
}};

const Op<decltype(ops::halo_sum)> sum_op{{
    .schema = "halo_sum(Tensor g, Tensor index, int[] send, int[] recv, int rows, str group) -> Tensor",
    .forward = sum_forward,
    .autograd = sum_autograd,
    .batched = sum_batched,
}};

}  // namespace

Tensor ops::halo(const Tensor& x, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv,
                 std::string_view group) {
  return halo_op(x, index, send, recv, group);
}

Tensor ops::halo_sum(const Tensor& g, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv, int64_t rows,
                     std::string_view group) {
  return sum_op(g, index, send, recv, rows, group);
}

}  // namespace gossamer
