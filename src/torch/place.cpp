// SPDX-License-Identifier: BSD-3-Clause
// out[p] = values[from[p]], or 0 where from[p] < 0.        dvalues = place(G, to, from)
// place_sum adds two of them:                              da = place(G, to_a, from_a), db likewise
// `to` is the way back: to[q] = the p with from[p] = q, or -1. Each entry goes to one place at most.
#include <ATen/ops/empty.h>
#include <gossamer/place.h>
#include <torch/library.h>

#include "batch.h"
#include "csr.h"
#include "differentiable.h"
#include "gossamer/sparse_ops.h"
#include "launch.h"

namespace gossamer {
namespace {

Tensor forward(const Tensor& values, const Tensor& from, const Tensor& to) {
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.sym_size(0) == to.sym_size(0), "place: values has shape ",
                    shape_text(values), " but the map is of ", to.sym_size(0), " entries");
  auto size = values.sym_sizes().vec();
  size[0] = from.sym_size(0);
  const Tensor out = at::empty_symint(size, values.options());
  if (values.is_cuda()) {  // torch's own kernels: one reader an entry, nothing to add
    const Tensor there = from.ge(0), padded = from.clamp_min(0);
    if (values.size(0) == 0) return out.zero_();
    std::vector<int64_t> shape(values.dim(), 1);
    shape[0] = -1;
    return values.index_select(0, padded).mul(there.view(shape));
  }
  launch("place", values, from, [&]<class T, class I>(auto exec) {
    if constexpr (Host<decltype(exec)>) {
      const Tensor v = values.contiguous(), f = from.contiguous();
      const int64_t heads = values.dim() == 1 ? 1 : values.size(1);
      kernels::place(exec, f.size(0), ptr<I>(f), heads, ptr<T>(v), mutable_ptr<T>(out));
    }
  });
  return out;
}

Tensor autograd(const Tensor& values, const Tensor& from, const Tensor& to) {
  return differentiable(
      "place", {values}, [&](const variable_list& in) { return ops::place(in[0], from, to); },
      [from, to](const Tensor& G, const variable_list&, const Tensor&, const Wanted&) {
        return variable_list{ops::place(G, to, from)};
      });
}

Tensor sum_forward(const Tensor& a, const Tensor& from_a, const Tensor& to_a, const Tensor& b, const Tensor& from_b,
                   const Tensor& to_b) {
  check_same_dtype("place_sum", "b", b, "a", a);
  if (!a.is_cpu() || !b.is_cpu()) return forward(a, from_a, to_a).add(forward(b, from_b, to_b));
  const bool fits = a.dim() == b.dim() && a.dim() >= 1 && a.sizes().slice(1) == b.sizes().slice(1) &&
                    a.size(0) == to_a.size(0) && b.size(0) == to_b.size(0) && from_a.size(0) == from_b.size(0);
  TORCH_CHECK_VALUE(fits, "place_sum: a ", shape_text(a), " and b ", shape_text(b), " do not fit their maps");
  auto size = a.sizes().vec();
  size[0] = from_a.size(0);
  const Tensor out = at::empty(size, a.options());
  launch("place_sum", a, from_a, [&]<class T, class I>(auto exec) {
    if constexpr (Host<decltype(exec)>) {
      const Tensor in_a = a.contiguous(), in_b = b.contiguous();
      kernels::place_sum(exec, size[0], a.dim() == 1 ? 1 : a.size(1), ptr<I>(from_a), ptr<T>(in_a), ptr<I>(from_b),
                         ptr<T>(in_b), mutable_ptr<T>(out));
    }
  });
  return out;
}

Tensor sum_autograd(const Tensor& a, const Tensor& from_a, const Tensor& to_a, const Tensor& b, const Tensor& from_b,
                    const Tensor& to_b) {
  return differentiable(
      "place_sum", {a, b},
      [&](const variable_list& in) { return ops::place_sum(in[0], from_a, to_a, in[1], from_b, to_b); },
      [=](const Tensor& G, const variable_list&, const Tensor&, const Wanted& wanted) {
        variable_list grads(2);
        if (wanted[0]) grads[0] = ops::place(G, to_a, from_a);
        if (wanted[1]) grads[1] = ops::place(G, to_b, from_b);
        return grads;
      },
      [&](const variable_list&, const variable_list& t, const Tensor&) {
        if (!t[0].defined()) return ops::place(t[1], from_b, to_b);
        if (!t[1].defined()) return ops::place(t[0], from_a, to_a);
        return ops::place_sum(t[0], from_a, to_a, t[1], from_b, to_b);
      },
      /*keep_output=*/false);
}

Tensor sum_batched(const Tensor& a, const Tensor& from_a, const Tensor& to_a, const Tensor& b, const Tensor& from_b,
                   const Tensor& to_b) {
  return ops::place(a, from_a, to_a).add(ops::place(b, from_b, to_b));
}

// Batched values are more heads.
Tensor batched(const Tensor& values, const Tensor& from, const Tensor& to) {
  const Batch batch("place", {from, to}, {values});
  const Tensor v = batch.at(values, 1);
  if (values.dim() == 1) return batch.wrap(ops::place(v, from, to), 1);
  const Tensor out = ops::place(v.flatten(1), from, to);
  return batch.wrap(unfold_dim(out, 1, {batch.size(), values.sym_size(1)}), 1);
}

}  // namespace

Tensor ops::place(const Tensor& values, const Tensor& from, const Tensor& to) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("gossamer::place", "").typed<decltype(place)>();
  return op.call(values, from, to);
}

Tensor ops::place_sum(const Tensor& a, const Tensor& from_a, const Tensor& to_a, const Tensor& b, const Tensor& from_b,
                      const Tensor& to_b) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("gossamer::place_sum", "").typed<decltype(place_sum)>();
  return op.call(a, from_a, to_a, b, from_b, to_b);
}

TORCH_LIBRARY_FRAGMENT(gossamer, m) {
  m.def("place_sum(Tensor a, Tensor from_a, Tensor to_a, Tensor b, Tensor from_b, Tensor to_b) -> Tensor");
  m.def("place(Tensor values, Tensor from, Tensor to) -> Tensor");
}
TORCH_LIBRARY_IMPL(gossamer, CPU, m) {
  m.impl("place_sum", sum_forward);
  m.impl("place", forward);
}
TORCH_LIBRARY_IMPL(gossamer, CUDA, m) {
  m.impl("place_sum", sum_forward);
  m.impl("place", forward);
}
TORCH_LIBRARY_IMPL(gossamer, Meta, m) {
  m.impl("place_sum", sum_forward);
  m.impl("place", forward);
}
TORCH_LIBRARY_IMPL(gossamer, Autograd, m) {
  m.impl("place_sum", sum_autograd);
  m.impl("place", autograd);
}
TORCH_LIBRARY_IMPL(gossamer, FuncTorchBatched, m) {
  m.impl("place_sum", sum_batched);
  m.impl("place", batched);
}

}  // namespace gossamer
