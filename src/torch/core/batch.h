// SPDX-License-Identifier: BSD-3-Clause
// vmap, and the four batching rules of all ops. A batch of values on one pattern *is* a matrix with heads, so most ops
// fold the batch into the heads, or into the columns, of one ordinary call and unfold its result.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <vector>

namespace gossamer {

using at::Tensor;
using at::TensorList;

// The innermost batch among the inputs of an op. While it lives, ops see the tensors below that batch. It is one of
// torch.func.vmap, or of the older vmap that torch.autograd still uses for is_grads_batched and jacobian(vectorize).
class Batch {
 public:
  Batch(const char* op, TensorList pattern, TensorList inputs);

  const c10::SymInt& size() const { return size_; }
  bool has(const Tensor& t) const;
  void check_members(const char* op) const;  // throws if there are none
  // t with its batch at dimension `dim`; without a batch it is repeated there.
  Tensor at(const Tensor& t, int64_t dim) const;
  // The other way: dimension `dim` of t is the batch.
  Tensor wrap(const Tensor& t, int64_t dim) const;

 private:
  int64_t level_ = -1;
  bool older_ = false;
  c10::SymInt size_ = 0;
  std::optional<c10::impl::ExcludeDispatchKeyGuard> below_;
};

// t with dimension `dim` split into `sizes`; no sizes: the dimension, of size 1, is dropped.
Tensor unfold_dim(const Tensor& t, int64_t dim, std::initializer_list<c10::SymInt> sizes);

// f(values, per_head) of values (nnz,) or (nnz, H), whose result has its heads at dimension `heads_at`: a batch is more
// heads. `per_head` goes with the values, one number a head (a handle of a factor); undefined if the op has none.
template <class F>
Tensor more_heads(const char* op, TensorList pattern, const Tensor& values, const Tensor& per_head, int64_t heads_at,
                  const F& f) {
  const Batch batch(op, pattern, {values, per_head});
  const Tensor v = batch.at(values, 1), h = per_head.defined() ? batch.at(per_head, 0) : per_head;
  if (values.dim() == 1) return batch.wrap(f(v, h), heads_at);
  const Tensor result = f(v.flatten(1), h.defined() ? h.flatten() : h);
  return batch.wrap(unfold_dim(result, heads_at, {batch.size(), values.sym_size(1)}), heads_at);
}

// f(values) → values.
template <class F>
Tensor more_heads(const char* op, TensorList pattern, const Tensor& values, const F& f) {
  return more_heads(op, pattern, values, /*per_head=*/{}, /*heads_at=*/1,
                    [&f](const Tensor& v, const Tensor&) { return f(v); });
}

// f(values, X, per_head) of values (nnz,) or (nnz, H) and X with n rows, then heads if values have them, then columns.
// A batch of values is more heads; a batch of X alone is more columns. `per_head`: as above.
template <class F>
Tensor heads_or_columns(const char* op, TensorList pattern, const Tensor& values, const Tensor& X,
                        const Tensor& per_head, const F& f) {
  const Batch batch(op, pattern, {values, X, per_head});
  const bool heads = values.dim() == 2;
  if (batch.has(values) || batch.has(per_head)) {
    const Tensor v = batch.at(values, 1), x = batch.at(X, 1);
    const Tensor h = per_head.defined() ? batch.at(per_head, 0) : per_head;
    if (!heads) return batch.wrap(f(v, x, h), 1);
    const Tensor y = f(v.flatten(1), x.flatten(1, 2), h.defined() ? h.flatten() : h);
    return batch.wrap(unfold_dim(y, 1, {batch.size(), values.sym_size(1)}), 1);
  }
  const int64_t columns = heads ? 2 : 1;
  const Tensor y = f(values, batch.at(X, columns).flatten(columns), per_head);
  if (X.dim() == columns) return batch.wrap(y, columns);
  return batch.wrap(unfold_dim(y, columns, {batch.size(), X.sym_size(columns)}), columns);
}

// f(U, V) → values of U and V with n rows, then heads if there are any, then columns: a batch is more heads.
template <class F>
Tensor more_heads_of_both(const char* op, TensorList pattern, const Tensor& U, const Tensor& V, const F& f) {
  const Batch batch(op, pattern, {U, V});
  Tensor u = batch.at(U, 1), v = batch.at(V, 1);
  if (U.dim() == 1) u = u.unsqueeze(-1), v = v.unsqueeze(-1);
  if (U.dim() < 3) return batch.wrap(f(u, v), 1);
  return batch.wrap(unfold_dim(f(u.flatten(1, 2), v.flatten(1, 2)), 1, {batch.size(), U.sym_size(1)}), 1);
}

// f(tensors) → a list of tensors, for one member of the batch after the other: for ops of which each call is a whole
// pass over the pattern anyway. Undefined tensors stay undefined.
template <class F>
std::vector<Tensor> one_by_one(const char* op, TensorList pattern, const std::vector<Tensor>& tensors, const F& f) {
  const Batch batch(op, pattern, tensors);
  batch.check_members(op);
  std::vector<std::vector<Tensor>> results;
  for (int64_t k = 0; k < batch.size().expect_int(); ++k) {
    std::vector<Tensor> member;
    for (const Tensor& t : tensors) member.push_back(t.defined() ? batch.at(t, 0).select(0, k) : t);
    const std::vector<Tensor> result = f(member);
    results.resize(result.size());
    for (size_t r = 0; r < result.size(); ++r) results[r].push_back(result[r]);
  }
  std::vector<Tensor> stacked;
  for (const std::vector<Tensor>& result : results) stacked.push_back(batch.wrap(at::stack(result), 0));
  return stacked;
}

}  // namespace gossamer
