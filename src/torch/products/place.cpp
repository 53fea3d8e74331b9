// SPDX-License-Identifier: BSD-3-Clause
// Entries moved between a whole of n and a part of it, by a map `at` that ascends strictly:
//   pick(whole, at)[q] = whole[at[q]]                      dwhole = place(G, at, n)
//   place(part, at, n)[at[q]] = part[q], 0 elsewhere       dpart = pick(G, at)
//   place_sum(a, at_a, b, at_b, n): two placed, added      da = pick(G, at_a), db = pick(G, at_b)
#include <gossamer/kernels/place.h>

#include <ATen/ATen.h>

#include <gossamer/products.h>
#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"

namespace gossamer {
namespace {

std::vector<SymInt> with_entries(const Tensor& values, SymInt n) {
  auto size = values.sym_sizes().vec();
  size[0] = std::move(n);
  return size;
}

int64_t heads_of(const Tensor& values) {
  return values.dim() == 1 ? 1 : values.size(1);
}

// Complex values are pairs of heads: (nnz, …) → (nnz, 2 …) and back.
Tensor real_heads(const Tensor& values) {
  return at::view_as_real(values).flatten(1);
}
Tensor complex_heads(const Tensor& whole, const Tensor& like) {
  auto size = with_entries(like, whole.sym_size(0));
  size.emplace_back(2);
  return at::view_as_complex(whole.view_symint(size));
}

// By torch's own ops: on a device, and for integers, which the kernels are not compiled for.
bool by_torch(const Tensor& values) {
  return values.is_cuda() || at::isIntegralType(values.scalar_type(), /*includeBool=*/true);
}

// A map into n entries of a whole. It ascends, so on the host its ends tell that it stays inside.
void check_map(const char* op, const Tensor& at, const Tensor& values, const SymInt& n) {
  check_integers(op, "a map", at);
  TORCH_CHECK_VALUE(at.device() == values.device(), op, ": the map is on ", at.device(), " but the values are on ",
                    values.device());
  if (!has_numbers(at)) return;
  const int64_t first = number_at(at, 0), last = number_at(at, at.size(0) - 1);
  TORCH_CHECK_VALUE(first >= 0 && last < n, op, ": the map goes from ", first, " to ", last, ", outside the ", n,
                    " entries");
}

void check_part(const char* op, const Tensor& part, const Tensor& at, const SymInt& n) {
  check_map(op, at, part, n);
  TORCH_CHECK_VALUE(part.dim() >= 1 && part.dim() <= 2 && part.sym_size(0) == at.sym_size(0), op, ": values of shape ",
                    shape_text(part), " do not fit a map of ", at.sym_size(0), " entries");
}

Tensor pick_forward(const Tensor& whole, const Tensor& at) {
  TORCH_CHECK_VALUE(whole.dim() >= 1 && whole.dim() <= 2, "pick: values must be (nnz,) or (nnz, H), not ",
                    shape_text(whole));
  check_map("pick", at, whole, whole.sym_size(0));
  if (by_torch(whole)) return whole.index_select(0, at);
  if (whole.is_complex()) return complex_heads(pick_forward(real_heads(whole), at), whole);
  const Tensor part = empty_result(with_entries(whole, at.sym_size(0)), whole.options());
  launch("pick", whole, at, [&]<class T, class I>(auto exec) {
    if constexpr (Host<decltype(exec)>) {
      const Tensor w = whole.contiguous(), map = at.contiguous();
      kernels::pick(exec, map.size(0), ptr<I>(map), heads_of(w), ptr<T>(w), mutable_ptr<T>(part));
    }
  });
  return part;
}

Tensor place_forward(const Tensor& part, const Tensor& at, SymInt n) {
  check_part("place", part, at, n);
  if (part.is_complex()) return complex_heads(place_forward(real_heads(part), at, std::move(n)), part);
  if (by_torch(part))
    return at::zeros_symint(with_entries(part, std::move(n)), part.options()).index_copy(0, at.to(at::kLong), part);
  const Tensor whole = empty_result(with_entries(part, std::move(n)), part.options());
  launch("place", part, at, [&]<class T, class I>(auto exec) {
    if constexpr (Host<decltype(exec)>) {
      const Tensor p = part.contiguous(), map = at.contiguous();
      const kernels::Part<T, I> one{map.size(0), ptr<I>(map), ptr<T>(p)};
      kernels::place(exec, whole.size(0), heads_of(p), {one}, mutable_ptr<T>(whole));
    }
  });
  return whole;
}

Tensor sum_forward(const Tensor& a, const Tensor& at_a, const Tensor& b, const Tensor& at_b, SymInt n) {
  check_part("place_sum", a, at_a, n);
  check_part("place_sum", b, at_b, n);
  check_same_dtype("place_sum", "b", b, "a", a);
  TORCH_CHECK_TYPE(at_a.scalar_type() == at_b.scalar_type(), "place_sum: one map is ", at_a.scalar_type(),
                   " and the other is ", at_b.scalar_type());
  TORCH_CHECK_VALUE(a.device() == b.device(), "place_sum: a is on ", a.device(), " but b is on ", b.device());
  TORCH_CHECK_VALUE(a.dim() == b.dim() && (a.dim() == 1 || a.sym_size(1) == b.sym_size(1)), "place_sum: a ",
                    shape_text(a), " and b ", shape_text(b), " have different heads");
  if (a.is_complex()) return complex_heads(sum_forward(real_heads(a), at_a, real_heads(b), at_b, std::move(n)), a);
  if (by_torch(a)) return place_forward(a, at_a, n).add_(place_forward(b, at_b, n));
  const Tensor whole = empty_result(with_entries(a, std::move(n)), a.options());
  launch("place_sum", a, at_a, [&]<class T, class I>(auto exec) {
    if constexpr (Host<decltype(exec)>) {
      const Tensor u = a.contiguous(), v = b.contiguous(), map_u = at_a.contiguous(), map_v = at_b.contiguous();
      const kernels::Part<T, I> one{map_u.size(0), ptr<I>(map_u), ptr<T>(u)},
          two{map_v.size(0), ptr<I>(map_v), ptr<T>(v)};
      kernels::place(exec, whole.size(0), heads_of(u), {one, two}, mutable_ptr<T>(whole));
    }
  });
  return whole;
}

Tensor pick_autograd(const Tensor& whole, const Tensor& at) {
  return differentiable(
      "pick", {whole}, [&](const variable_list& in) { return ops::pick(in[0], at); },
      [at, n = whole.sym_size(0)](const Tensor& G, const variable_list&, const Tensor&, const Wanted&) {
        return variable_list{ops::place(G, at, n)};
      });
}

Tensor place_autograd(const Tensor& part, const Tensor& at, SymInt n) {
  return differentiable(
      "place", {part}, [&](const variable_list& in) { return ops::place(in[0], at, n); },
      [at](const Tensor& G, const variable_list&, const Tensor&, const Wanted&) {
        return variable_list{ops::pick(G, at)};
      });
}

Tensor sum_autograd(const Tensor& a, const Tensor& at_a, const Tensor& b, const Tensor& at_b, SymInt n) {
  return differentiable(
      "place_sum", {a, b}, [&](const variable_list& in) { return ops::place_sum(in[0], at_a, in[1], at_b, n); },
      [at_a, at_b](const Tensor& G, const variable_list&, const Tensor&, const Wanted& wanted) {
        variable_list grads(2);
        if (wanted[0]) grads[0] = ops::pick(G, at_a);
        if (wanted[1]) grads[1] = ops::pick(G, at_b);
        return grads;
      },
      [&](const variable_list&, const variable_list& t, const Tensor&) {
        if (!t[0].defined()) return ops::place(t[1], at_b, n);
        if (!t[1].defined()) return ops::place(t[0], at_a, n);
        return ops::place_sum(t[0], at_a, t[1], at_b, n);
      },
      /*keep_output=*/false);
}

Tensor pick_batched(const Tensor& whole, const Tensor& at) {
  return more_heads("pick", {at}, whole, [&](const Tensor& v) { return ops::pick(v, at); });
}

Tensor place_batched(const Tensor& part, const Tensor& at, SymInt n) {
  return more_heads("place", {at}, part, [&](const Tensor& v) { return ops::place(v, at, n); });
}

Tensor sum_batched(const Tensor& a, const Tensor& at_a, const Tensor& b, const Tensor& at_b, SymInt n) {
  return ops::place(a, at_a, n).add(ops::place(b, at_b, n));
}

const Op<decltype(ops::pick)> pick_op{{
    .schema = "pick(Tensor whole, Tensor at) -> Tensor",
    .forward = pick_forward,
    .autograd = pick_autograd,
    .batched = pick_batched,
}};
const Op<decltype(ops::place)> place_op{{
    .schema = "place(Tensor part, Tensor at, SymInt n) -> Tensor",
    .forward = place_forward,
    .autograd = place_autograd,
    .batched = place_batched,
}};
const Op<decltype(ops::place_sum)> place_sum_op{{
    .schema = "place_sum(Tensor a, Tensor at_a, Tensor b, Tensor at_b, SymInt n) -> Tensor",
    .forward = sum_forward,
    .autograd = sum_autograd,
    .batched = sum_batched,
}};

}  // namespace

Tensor ops::pick(const Tensor& whole, const Tensor& at) {
  return pick_op(whole, at);
}

Tensor ops::place(const Tensor& part, const Tensor& at, SymInt n) {
  return place_op(part, at, std::move(n));
}

Tensor ops::place_sum(const Tensor& a, const Tensor& at_a, const Tensor& b, const Tensor& at_b, SymInt n) {
  return place_sum_op(a, at_a, b, at_b, std::move(n));
}

}  // namespace gossamer
