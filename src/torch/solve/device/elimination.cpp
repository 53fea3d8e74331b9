// SPDX-License-Identifier: BSD-3-Clause
#include "solve/device/elimination.h"

#include <ATen/ATen.h>
#include <gossamer/kernels/factor.h>
#include <gossamer/linalg.h>

#include <limits>

#include "core/host.h"
#include "core/launch.h"

namespace gossamer {
namespace {

// The pattern of A in the order, by rows. Within a row the columns are in no order: `fill` asks for none.
kernels::Filled<int> filled(const SquareColumns& A, const PivotOrder& order) {
  std::vector<int> indptr(A.n + 1, 0), indices(A.ptr[A.n]);
  for (int q = 0; q < A.ptr[A.n]; ++q) ++indptr[order.rows[A.rows[q]] + 1];
  for (int i = 0; i < A.n; ++i) indptr[i + 1] += indptr[i];
  std::vector<int> next(indptr.begin(), indptr.end() - 1);
  for (int j = 0; j < A.n; ++j)
    for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) indices[next[order.rows[A.rows[q]]]++] = order.columns[j];
  return kernels::fill(PatternView<int>{A.n, A.n, A.ptr[A.n], indptr.data(), indices.data()});
}

kernels::Filled<int> lower_triangle(const kernels::Filled<int>& F) {
  kernels::Filled<int> L{{0}, {}, {}};
  for (size_t i = 0; i < F.diagonal.size(); ++i) {
    L.indices.insert(L.indices.end(), F.indices.begin() + F.indptr[i], F.indices.begin() + F.diagonal[i] + 1);
    L.indptr.push_back(static_cast<int>(L.indices.size()));
    L.diagonal.push_back(L.indptr.back() - 1);
  }
  return L;
}

template <class Number>
Tensor on(at::Device device, const std::vector<Number>& numbers) {
  const Tensor host = at::empty({static_cast<int64_t>(numbers.size())}, c10::CppTypeToScalarType<Number>::value);
  std::copy(numbers.begin(), numbers.end(), host.mutable_data_ptr<Number>());
  return host.to(device);
}

std::vector<int> inverse(const std::vector<int>& ranks) {
  std::vector<int> in_order(ranks.size());
  for (size_t k = 0; k < ranks.size(); ++k) in_order[ranks[k]] = static_cast<int>(k);
  return in_order;
}

}  // namespace

Elimination::Elimination(const SquareColumns& A, const std::vector<int64_t>& perm, const PivotOrder& order,
                         bool symmetric, at::Device device)
    : n_(A.n), symmetric_(symmetric), parity_(gossamer::parity(order.rows) * gossamer::parity(order.columns)) {
  const KeptResults kept;
  kernels::Filled<int> F = filled(A, order);
  if (symmetric) F = lower_triangle(F);
  std::vector<int64_t> entries, slots;
  for (int j = 0; j < A.n; ++j)
    for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) {
      const int row = order.rows[A.rows[q]], column = order.columns[j];
      if (symmetric && column > row) continue;
      entries.push_back(perm[q]);
      slots.push_back(place_of(F.indices.data(), F.indptr[row], F.indptr[row + 1], column));
    }
  const Tensor indptr = on(device, F.indptr), indices = on(device, F.indices);
  const auto [indptr_t, indices_t, perm_t] = ops::transpose(indptr, indices, {n_, n_});
  F_ = {indptr, indices, indptr_t, indices_t, perm_t};
  diagonal_ = on(device, F.diagonal);
  entries_ = on(device, entries), slots_ = on(device, slots);
  rows_ = {on(device, order.rows), on(device, inverse(order.rows))};
  columns_ = {on(device, order.columns), on(device, inverse(order.columns))};
}

Tensor Elimination::factors(const Tensor& values) const {
  const Tensor on_F = at::zeros({F_[1].size(0), values.size(1)}, values.options());
  on_F.index_copy_(0, slots_, values.index_select(0, entries_));
  const Tensor ready = at::zeros({n_}, values.options().dtype(at::kInt)),
               tickets = at::zeros({1}, values.options().dtype(at::kLong));
  launch("factorize", on_F, F_[0], [&]<class T, class I>(auto exec) {
    if constexpr (std::is_same_v<T, double> && std::is_same_v<I, int> && !Host<decltype(exec)>) {
      const PatternView<I> F{n_, n_, F_[1].size(0), ptr<I>(F_[0]), ptr<I>(F_[1])};
      const kernels::FactorProgress progress{reinterpret_cast<unsigned long long*>(mutable_ptr<int64_t>(tickets)),
                                             mutable_ptr<int>(ready)};
      if (symmetric_)
        kernels::factor_ldlt(exec, F, values.size(1), mutable_ptr<T>(on_F), progress);
      else
        kernels::factor_lu(exec, F, ptr<I>(diagonal_), values.size(1), mutable_ptr<T>(on_F), progress);
    }
  });
  return on_F;
}

Tensor Elimination::pivots(const Tensor& factors) const {
  return factors.index_select(0, diagonal_);
}

// With a unit diagonal nothing is divided by, and the host need not look whether that is zero.
Tensor Elimination::triangle(const Tensor& factors, const Tensor& b, bool upper, bool t) const {
  return ops::solve_triangular(F_, factors, b, {n_, n_}, {}, upper, /*unit_diagonal=*/true, t);
}

Tensor Elimination::solve(const Tensor& factors, Tensor b, bool t) const {
  const Side &from = t ? columns_ : rows_, &to = t ? rows_ : columns_;
  const Tensor D = pivots(factors).unsqueeze(2);
  b = b.index_select(0, from.in_order);
  if (symmetric_)
    b = triangle(factors, triangle(factors, b, false, false).div(D), false, true);
  else if (t)
    b = triangle(factors, triangle(factors, b, true, true).div(D), false, true);
  else
    b = triangle(factors, triangle(factors, b, false, false).div(D), true, false);
  return b.index_select(0, to.ranks);
}

}  // namespace gossamer
