// SPDX-License-Identifier: BSD-3-Clause
// distributed_dot:  s = Σ_ranks Σ_i u[i] v[i], for each column       du = v · sum(g),  dv = u · sum(g)
// distributed_sum:  s = Σ_ranks t                                    dt = sum(g)
//
// All ranks have s, and what is differentiated is the sum over the ranks: so the gradients of all of them are added.
#include <ATen/ATen.h>
#include <gossamer/distributed_solve.h>
#include <gossamer/kernels/dot_exact.h>

#include "core/batch.h"
#include "core/csr.h"
#include "core/differentiable.h"
#include "core/launch.h"
#include "core/op.h"
#include "distributed/exchange.h"
#include "distributed/solve/exact.h"

namespace gossamer {

std::vector<double> distributed::total(const Group& group, const std::vector<kernels::ExactSum>& sums) {
  constexpr int64_t size = kernels::ExactSum::size;
  const auto count = static_cast<int64_t>(sums.size());
  std::vector<double> results;
  if (group.size() == 1) {
    for (const auto& sum : sums) results.push_back(sum.value());
    return results;
  }
  Tensor numbers = at::empty({count, size}, at::kLong);
  auto* data = numbers.mutable_data_ptr<int64_t>();
  for (int64_t c = 0; c < count; ++c) std::copy_n(sums[c].data(), size, data + c * size);
  group.sum_(numbers);
  for (int64_t c = 0; c < count; ++c) {
    kernels::ExactSum sum;
    std::copy_n(data + c * size, size, sum.data());
    results.push_back(sum.value());
  }
  return results;
}

namespace {

using distributed::Group;

void check(const Tensor& u, const Tensor& v) {
  TORCH_CHECK_VALUE(u.dim() == 1 || u.dim() == 2, "distributed.dot: u must be (n,) or (n, k), not ", shape_text(u));
  TORCH_CHECK_VALUE(u.sym_sizes() == v.sym_sizes(), "distributed.dot: u has shape ", shape_text(u), " but v has ",
                    shape_text(v));
  check_same_dtype("distributed.dot", "v", v, "u", u);
  TORCH_CHECK_TYPE(u.is_floating_point(), "distributed.dot: u must be real and floating, not ", u.scalar_type());
  TORCH_CHECK_VALUE(u.device() == v.device(), "distributed.dot: u is on ", u.device(), " but v is on ", v.device());
}

Tensor dot_forward(const Tensor& u, const Tensor& v, std::string_view name) {
  const auto shape = u.sym_sizes().slice(1);
  if (u.is_meta()) {
    check(u, v);
    return at::empty_symint(shape, u.options());
  }
  const Group group(name);
  group.check_on_all("distributed.dot: u " + distributed::row_text(u), [&] { check(u, v); });
  const auto type = u.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;  // products of 16 bits fit, too
  const Tensor a = u.to(at::kCPU, type).contiguous(), b = v.to(at::kCPU, type).contiguous();
  const int64_t n = a.size(0), k = a.dim() == 1 ? 1 : a.size(1);
  std::vector<kernels::ExactSum> sums(k);
  with_types("distributed.dot", type, at::kInt, [&]<class T, class> {
    if constexpr (std::same_as<T, Sum<T>>) kernels::dot_exact(torch_pool(), n, k, ptr<T>(a), ptr<T>(b), sums.data());
  });
  const std::vector<double> results = distributed::total(group, sums);
  return at::tensor(at::ArrayRef<double>(results), at::kDouble)
      .to(u.options())
      .view(c10::asIntArrayRefUnchecked(shape));
}

Tensor dot_autograd(const Tensor& u, const Tensor& v, std::string_view name) {
  return differentiable(
      "distributed_dot", {u, v}, [&](const variable_list& in) { return ops::distributed_dot(in[0], in[1], name); },
      [name = std::string(name)](const Tensor& G, const variable_list& in, const Tensor&, const Wanted& wanted) {
        const Tensor g = ops::distributed_sum(G, name);
        return variable_list{wanted[0] ? in[1] * g : Tensor(), wanted[1] ? in[0] * g : Tensor()};
      });
}

Tensor dot_batched(const Tensor& u, const Tensor& v, std::string_view name) {
  const Batch batch("distributed_dot", {}, {u, v});
  const auto columns = [&](const Tensor& t) { return batch.at(t, 1).flatten(1); };
  const Tensor s = ops::distributed_dot(columns(u), columns(v), name);
  return batch.wrap(u.dim() == 1 ? s : unfold_dim(s, 0, {batch.size(), u.sym_size(1)}), 0);
}

Tensor sum_forward(const Tensor& t, std::string_view name) {
  if (t.is_meta()) return at::empty_like(t);
  const Group group(name);
  group.check_on_all(c10::str("distributed.sum: t ", t.scalar_type(), " ", shape_text(t)), [&] {
    TORCH_CHECK_TYPE(t.is_floating_point() || t.scalar_type() == at::kLong,
                     "distributed.sum: t must be floating or int64, not ", t.scalar_type());
  });
  const bool narrow = t.scalar_type() == at::kBFloat16 || t.scalar_type() == at::kHalf;
  Tensor sum = narrow ? t.to(at::kFloat) : t.contiguous().clone();
  group.sum_(sum);
  return sum.to(t.scalar_type());
}

Tensor sum_autograd(const Tensor& t, std::string_view name) {
  return differentiable(
      "distributed_sum", {t}, [&](const variable_list& in) { return ops::distributed_sum(in[0], name); },
      [name = std::string(name)](const Tensor& G, const variable_list&, const Tensor&, const Wanted&) {
        return variable_list{ops::distributed_sum(G, name)};
      });
}

Tensor sum_batched(const Tensor& t, std::string_view name) {
  const Batch batch("distributed_sum", {}, {t});
  return batch.wrap(ops::distributed_sum(batch.at(t, 0), name), 0);
}

const Op<decltype(ops::distributed_dot)> dot_op{{
    .schema = "distributed_dot(Tensor u, Tensor v, str group) -> Tensor",
    .forward = dot_forward,
    .autograd = dot_autograd,
    .batched = dot_batched,
}};
const Op<decltype(ops::distributed_sum)> sum_op{{
    .schema = "distributed_sum(Tensor t, str group) -> Tensor",
    .forward = sum_forward,
    .autograd = sum_autograd,
    .batched = sum_batched,
}};

}  // namespace

Tensor ops::distributed_dot(const Tensor& u, const Tensor& v, std::string_view group) {
  return dot_op(u, v, group);
}
Tensor ops::distributed_sum(const Tensor& t, std::string_view group) {
  return sum_op(t, group);
}

Tensor distributed::dot(const Tensor& u, const Tensor& v, std::string_view group) {
  return ops::distributed_dot(u, v, group);
}
Tensor distributed::sum(const Tensor& t, std::string_view group) {
  return ops::distributed_sum(t, group);
}

}  // namespace gossamer
