// SPDX-License-Identifier: BSD-3-Clause
// Sums, means and maxima, and the scaling of rows and columns, in ops that are differentiable already:
//
//   rowsum(A) = A 1        d at the entries of its row = (d 1ᵀ) on A        max = the value at its position
#include <gossamer/products.h>
#include <gossamer/reduce.h>

#include <ATen/ATen.h>
#include <gossamer/kernels/argmax.h>

#include <array>
#include <limits>

#include "core/batch.h"
#include "core/csr.h"
#include "core/launch.h"
#include "core/op.h"

namespace gossamer {
namespace {

// Sums keep their precision under autocast.
struct WithoutAutocast {
  c10::impl::ExcludeDispatchKeyGuard off{
      c10::DispatchKeySet({c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA})};
};

void check_values(const char* op, const Tensor& values, const PatternTensors& A) {
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.dim() <= 2 && values.sym_size(0) == A.nnz(), op, ": values has shape ",
                    shape_text(values), " but the pattern has ", A.nnz(), " entries");
}

// 0 or 1.
int64_t axis(const char* op, int64_t dim) {
  TORCH_CHECK_INDEX(dim >= -2 && dim <= 1, op, ": dim must be 0, 1 or None, not ", dim);
  return dim < 0 ? dim + 2 : dim;
}

Tensor argmax(const Tensor& indptr, const Tensor& values, SymInt cols) {
  TORCH_CHECK_VALUE(values.dim() == 1 || values.dim() == 2, "amax: values must be (nnz,) or (nnz, H), not ",
                    shape_text(values));
  TORCH_CHECK_VALUE(values.device() == indptr.device(), "amax: values are on ", values.device(),
                    " but the pattern is on ", indptr.device());
  check_integers("amax", "indptr", indptr);
  TORCH_CHECK_VALUE(indptr.sym_size(0) >= 1, "amax: indptr must be (rows + 1,), not ", shape_text(indptr));
  TORCH_CHECK_VALUE(!has_numbers(indptr) || number_at(indptr, indptr.size(0) - 1) == values.size(0),
                    "amax: values has shape ", shape_text(values), ", which is not one number an entry");
  auto size = values.sym_sizes().vec();
  size[0] = indptr.sym_size(0) - 1;
  const Tensor at = at::empty_symint(size, values.options().dtype(at::kLong));
  launch("amax", values, indptr, [&]<class T, class I>(auto exec) {
    const Tensor v = values.contiguous(), starts = indptr.contiguous();
    const PatternView<I> pattern{starts.size(0) - 1, cols.expect_int(), v.size(0), ptr<I>(starts), nullptr};
    const Csr<T, I> A{pattern, ptr<T>(v), v.dim() == 2 ? v.size(1) : 1, nullptr};
    kernels::row_argmax(exec, A, mutable_ptr<int64_t>(at));
  });
  return at;
}

Tensor argmax_batched(const Tensor& indptr, const Tensor& values, SymInt cols) {
  return more_heads("amax", {indptr}, values, [&](const Tensor& v) { return ops::row_argmax(indptr, v, cols); });
}

const Op<decltype(ops::row_argmax)> argmax_op{{
    .schema = "row_argmax(Tensor indptr, Tensor values, SymInt cols) -> Tensor",
    .forward = argmax,
    .batched = argmax_batched,
}};

// Σ_i y[i], as the one entry of y 1ᵀ: in one order, whatever the number of threads, which torch's own sum is not.
Tensor total(const Tensor& y) {
  const Tensor row = y.movedim(0, -1).unsqueeze(0), ones = at::ones_like(row);
  const auto integers = at::TensorOptions().dtype(at::kInt).device(y.device());
  const std::vector<Tensor> one_entry = {at::arange(2, integers), at::zeros({1}, integers)};
  const std::array<SymInt, 2> one_by_one = {1, 1};
  return ops::sddmm(one_entry, row, ones.detach(), one_by_one).select(0, 0);
}

// √Σ |v|², 0 with gradient 0 where all v are 0.
Tensor frobenius(const Tensor& values) {
  const WithoutAutocast precise;
  if (values.is_complex()) return frobenius(at::cat({at::real(values), at::imag(values)}));
  const Tensor squares = total(values * values), zero = squares.eq(0);
  return at::where(zero, squares, at::where(zero, at::ones_like(squares), squares).sqrt());
}

// Sums of integers, in int64 as torch has them: exact in any order.
Tensor integer_sum(const PatternTensors& A, const Tensor& values, std::optional<int64_t> along) {
  const Tensor numbers = values.to(at::kLong);
  if (!along) return numbers.sum(0);
  auto size = values.sym_sizes().vec();
  size[0] = *along == 0 ? A.cols : A.rows;
  const Tensor place = *along == 0 ? A.indices : ops::row_indices(A.indptr, A.indices);
  return at::zeros_symint(size, numbers.options()).index_add(0, place, numbers);
}

Tensor row_amax(const Tensor& indptr, const Tensor& values, const SymInt& cols) {
  const Tensor at = ops::row_argmax(indptr, values.detach(), cols);
  auto one = values.sym_sizes().vec();
  one[0] = 1;
  return at::cat({values, values.new_zeros_symint(one)}).gather(0, at);  // the last entry stands for what is not stored
}

}  // namespace

Tensor ops::row_argmax(const Tensor& indptr, const Tensor& values, SymInt cols) {
  return argmax_op(indptr, values, std::move(cols));
}

Tensor ops::row_sum(TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  return sum(pattern, values, shape, 1);
}

Tensor ops::spread(TensorList pattern, const Tensor& d, SymIntArrayRef shape, bool cols) {
  const WithoutAutocast precise;
  const Tensor own = d.dim() == 2 ? d.unsqueeze(-1) : d;
  auto size = own.sym_sizes().vec();
  size[0] = shape[cols ? 0 : 1];
  const Tensor ones = at::ones_symint(size, d.options().requires_grad(false));
  return cols ? sddmm(pattern, ones, own, shape) : sddmm(pattern, own, ones, shape);
}

Tensor ops::scale_axis(TensorList pattern, const Tensor& values, const Tensor& d, SymIntArrayRef shape, bool cols) {
  const char* op = cols ? "scale_cols" : "scale_rows";
  const PatternTensors A = unpack(op, pattern, shape, /*t=*/false);
  check_values(op, values, A);
  const SymInt& n = shape[cols ? 1 : 0];
  TORCH_CHECK_VALUE(d.dim() >= 1 && d.dim() <= values.dim() && d.sym_size(0) == n &&
                        (d.dim() == 1 || d.sym_size(1) == values.sym_size(1)),
                    op, ": d has shape ", shape_text(d), " but A has ", n, cols ? " columns" : " rows",
                    " and values of shape ", shape_text(values));
  const auto type = at::promote_types(values.scalar_type(), d.scalar_type());
  const Tensor at_entries = spread(pattern, d.to(type), shape, cols);
  return values.to(type) * (at_entries.dim() < values.dim() ? at_entries.unsqueeze(1) : at_entries);
}

Tensor ops::sum(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim) {
  const WithoutAutocast precise;
  const PatternTensors A = unpack("sum", pattern, shape, /*t=*/false);
  if (at::isIntegralType(values.scalar_type(), /*includeBool=*/true)) {
    TORCH_CHECK_VALUE(values.dim() >= 1 && values.sym_size(0) == A.nnz() && values.device() == A.indptr.device(),
                      "sum: values ", shape_text(values), " on ", values.device(), " do not fit the pattern of ",
                      A.nnz(), " entries on ", A.indptr.device());
    return integer_sum(A, values, dim ? std::optional(axis("sum", *dim)) : std::nullopt);
  }
  check_values("sum", values, A);
  if (!dim) return total(row_sum(pattern, values, shape));
  const int64_t along = axis("sum", *dim);
  auto size = values.sym_sizes().vec();
  size[0] = shape[along];
  return spmm(pattern, values, at::ones_symint(size, values.options().requires_grad(false)), shape, /*t=*/along == 0);
}

Tensor ops::mean(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim) {
  unpack("mean", pattern, shape, /*t=*/false);
  const SymInt count = dim ? shape[axis("mean", *dim)] : shape[0] * shape[1];
  return sum(pattern, values, shape, dim) / count.expect_int();
}

Tensor ops::amax(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim) {
  const PatternTensors A = unpack("amax", pattern, shape, /*t=*/false);
  check_dense("amax", "values", values, A, A.nnz(), "entries");
  const int64_t m = A.rows.expect_int(), n = A.cols.expect_int();
  const int64_t along = dim ? axis("amax", *dim) : -1;
  TORCH_CHECK_VALUE(along == 0 || n > 0, "amax: a matrix without columns has no largest number");
  TORCH_CHECK_VALUE(along == 1 || m > 0, "amax: a matrix without rows has no largest number");
  if (along == 1) return row_amax(A.indptr, values, A.cols);
  if (along == 0) {
    const PatternTensors T = unpack("amax", pattern, shape, /*t=*/true);
    return row_amax(T.indptr, values.index_select(0, T.perm), T.cols);
  }
  const Tensor ends = at::arange(2, A.indptr.options()) * values.size(0);  // all entries in one row
  const int64_t places = m <= std::numeric_limits<int64_t>::max() / n ? m * n : std::numeric_limits<int64_t>::max();
  return row_amax(ends, values, places).select(0, 0);
}

bool ops::allclose(TensorList A, const Tensor& values_A, TensorList B, const Tensor& values_B, at::IntArrayRef shape,
                   double rtol, double atol, bool equal_nan) {
  const auto size_of = c10::fromIntArrayRefSlow(shape);
  check_values("allclose", values_A, unpack("allclose", A, size_of, /*t=*/false));
  check_values("allclose", values_B, unpack("allclose", B, size_of, /*t=*/false));
  TORCH_CHECK_VALUE(values_A.dim() == values_B.dim() && values_A.sizes().slice(1) == values_B.sizes().slice(1),
                    "allclose: A has values ", shape_text(values_A), " but B has ", shape_text(values_B));
  check_same_dtype("allclose", "B", values_B, "A", values_A);
  if (at::equal(A[0], B[0]) && at::equal(A[1], B[1])) return at::allclose(values_A, values_B, rtol, atol, equal_nan);
  const Tensor rows = at::cat({row_indices(A[0], A[1]), row_indices(B[0], B[1])}), cols = at::cat({A[1], B[1]});
  const auto [indptr, indices, slot] = coo(rows, cols, shape);
  auto size = values_A.sizes().vec();
  size[0] = indices.size(0);
  const auto on_both = [&](const Tensor& values, int64_t from) {
    return at::zeros(size, values.options()).index_copy(0, slot.narrow(0, from, values.size(0)), values.detach());
  };
  return at::allclose(on_both(values_A, 0), on_both(values_B, values_A.size(0)), rtol, atol, equal_nan);
}

static const Composites composites =
    Composites()
        .def("scale_axis(Tensor[] pattern, Tensor values, Tensor d, SymInt[] shape, bool cols) -> Tensor",
             ops::scale_axis)
        .def("sum(Tensor[] pattern, Tensor values, SymInt[] shape, int? dim=None) -> Tensor", ops::sum)
        .def("mean(Tensor[] pattern, Tensor values, SymInt[] shape, int? dim=None) -> Tensor", ops::mean)
        .def("amax(Tensor[] pattern, Tensor values, SymInt[] shape, int? dim=None) -> Tensor", ops::amax)
        .def("norm(Tensor values) -> Tensor", frobenius)
        .def(
            "allclose(Tensor[] A, Tensor values_A, Tensor[] B, Tensor values_B, int[] shape, float rtol, float atol, "
            "bool equal_nan) -> bool",
            ops::allclose);

// The front end.

namespace {

template <class Op>
Tensor reduced(const Op& op, const SparseMatrix& A, std::optional<int64_t> dim) {
  const bool down = dim && (*dim == 0 || *dim == -2);
  return op(A.pattern().tensors(/*with_transpose=*/down), A.values(), A.pattern().sym_shape(), dim);
}

}  // namespace

Tensor SparseMatrix::sum(std::optional<int64_t> dim) const {
  return reduced(ops::sum, *this, dim);
}

Tensor SparseMatrix::mean(std::optional<int64_t> dim) const {
  return reduced(ops::mean, *this, dim);
}

Tensor SparseMatrix::amax(std::optional<int64_t> dim) const {
  pattern_.check_simple("amax");
  return reduced(ops::amax, *this, dim);
}

Tensor SparseMatrix::norm() const {
  pattern_.check_simple("norm");
  return frobenius(values_);
}

bool allclose(const SparseMatrix& A, const SparseMatrix& B, double rtol, double atol, bool equal_nan) {
  if (A.shape() != B.shape()) return false;
  A.pattern().check_simple("allclose"), B.pattern().check_simple("allclose");
  return ops::allclose(A.pattern().tensors(), A.values(), B.pattern().tensors(), B.values(), A.shape(), rtol, atol,
                       equal_nan);
}

}  // namespace gossamer
