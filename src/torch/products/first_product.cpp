// SPDX-License-Identifier: BSD-3-Clause
// The first product of two matrices whose patterns have not met: the pattern of C = A B and the values on it, in one
// pass over the products. It is found in room for one entry a product; where that would be too much to ask for, for
// integers and complex numbers, and on a device, it is `spgemm_pattern` and then `spgemm`. The values are the same, bit
// for bit.
#include <gossamer/kernels/first_product.h>
#include <gossamer/kernels/spgemm_pattern.h>

#include <ATen/ATen.h>

#include <gossamer/products.h>
#include "core/csr.h"
#include "core/host.h"
#include "core/launch.h"
#include "core/op.h"
#include "memory/pages.h"
#include "products/pairs.h"

namespace gossamer {
namespace {

using Found = std::tuple<Tensor, Tensor, Tensor>;

Found in_two_steps(TensorList A, const Tensor& a, at::IntArrayRef shape_A, TensorList B, const Tensor& b,
                   at::IntArrayRef shape_B) {
  const auto [indptr, indices] = ops::spgemm_pattern(A, shape_A, B, shape_B);
  const std::array<SymInt, 2> shape = {shape_A[0], shape_B[1]};
  return {indptr, indices,
          ops::spgemm(A, a, c10::fromIntArrayRefSlow(shape_A), B, b, c10::fromIntArrayRefSlow(shape_B),
                      {indptr, indices}, shape, ops::nn)};
}

// Addresses, of which a thread touches those that it writes entries to.
bool has_room(int64_t products, const Tensor& values, const Tensor& indices) {
  constexpr int64_t most = int64_t{1} << 30;
  return products <= most / static_cast<int64_t>(values.itemsize() + indices.itemsize());
}

template <class T, class I>
Found in_one_pass(Pool exec, const Csr<T, I>& A, const Csr<T, I>& B, const Tensor& work, const Tensor& like,
                  at::ScalarType type) {
  const int64_t products = ptr<int64_t>(work)[A.rows];
  const auto integers = [&](int64_t n) {
    const KeptResults kept;
    return host_integers(n, type);
  };
  const auto numbers = [&](int64_t n) { return empty_result({SymInt(n)}, like.options()); };
  const Tensor indptr = integers(A.rows + 1), columns = integers(products), values = numbers(products);
  const auto found = kernels::first_product(exec, A, B, ptr<int64_t>(work), mutable_ptr<I>(indptr),
                                            mutable_ptr<I>(columns), mutable_ptr<T>(values));
  int64_t nnz = 0;
  for (const auto& rows : found) nnz += rows.count;
  if (found.size() == 1 && nnz >= products / 2) {
    shorten(columns, nnz), shorten(values, nnz);
    return {indptr, columns, values};
  }
  const Tensor indices = integers(nnz), c = numbers(nnz);
  kernels::close_up(exec, found, ptr<I>(columns), ptr<T>(values), mutable_ptr<I>(indptr), mutable_ptr<I>(indices),
                    mutable_ptr<T>(c));
  return {indptr, indices, c};
}

Found forward(TensorList pattern_A, const Tensor& a, at::IntArrayRef shape_A, TensorList pattern_B, const Tensor& b,
              at::IntArrayRef shape_B) {
  const bool real = at::isFloatingType(a.scalar_type()) && a.scalar_type() == b.scalar_type();
  if (!real || a.dim() != 1 || b.dim() != 1) return in_two_steps(pattern_A, a, shape_A, pattern_B, b, shape_B);
  const auto pair = host_pair("spgemm", pattern_A, shape_A, pattern_B, shape_B);
  const PatternTensors &A = pair.first, &B = pair.second;
  const auto type = A.indptr.scalar_type();
  check_they_multiply(shape_A, shape_B);
  check_dense("spgemm", "the values of A", a, A, A.nnz(), "entries");
  check_dense("spgemm", "the values of B", b, B, B.nnz(), "entries");
  const Tensor work = host_integers(shape_A[0] + 1);
  Found found;
  launch("spgemm", a, A.indptr, [&]<class T, class I>(auto exec) {
    if constexpr (Host<decltype(exec)>) {
      TORCH_CHECK_VALUE(kernels::rows_ascend(exec, B.view<I>()), "spgemm: the columns of a row of B do not ascend");
      kernels::spgemm_work(exec, A.view<I>(), B.view<I>(), mutable_ptr<int64_t>(work));
      const Tensor u = a.contiguous(), v = b.contiguous();
      found = has_room(ptr<int64_t>(work)[shape_A[0]], a, A.indices)
                  ? in_one_pass<T, I>(exec, A.view<T, I>(u, 1), B.view<T, I>(v, 1), work, a, type)
                  : in_two_steps(pattern_A, a, shape_A, pattern_B, b, shape_B);
    }
  });
  return found;
}

// The product is there before it is recorded, because the record needs its pattern; so does a tangent.
Found autograd(TensorList A, const Tensor& a, at::IntArrayRef shape_A, TensorList B, const Tensor& b,
               at::IntArrayRef shape_B) {
  const auto [indptr, indices, product] = [&] {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return ops::first_product(A, a, shape_A, B, b, shape_B);
  }();
  const auto sA = c10::fromIntArrayRefSlow(shape_A), sB = c10::fromIntArrayRefSlow(shape_B);
  const std::array<SymInt, 2> sC = {shape_A[0], shape_B[1]};
  const std::vector<Tensor> C = {indptr, indices};
  Tensor there = product;
  const auto again = [&](const variable_list& in) {
    return there.defined() ? std::exchange(there, {}) : ops::spgemm(A, in[0], sA, B, in[1], sB, C, sC, ops::nn);
  };
  return {indptr, indices, differentiable("spgemm", {a, b}, again, spgemm_vjp(A, sA, B, sB, C, sC, ops::nn))};
}

const Op<decltype(ops::first_product)> op{{
    .schema = "first_product(Tensor[] A, Tensor a, int[] shape_A, Tensor[] B, Tensor b, int[] shape_B) -> (Tensor "
              "indptr, Tensor indices, Tensor c)",
    .forward = forward,
    .on_device = in_two_steps,
    .autograd = autograd,
    .batched = in_two_steps,
    .meta = false,
}};

}  // namespace

Found ops::first_product(TensorList A, const Tensor& a, at::IntArrayRef shape_A, TensorList B, const Tensor& b,
                         at::IntArrayRef shape_B) {
  return op(A, a, shape_A, B, b, shape_B);
}

}  // namespace gossamer
