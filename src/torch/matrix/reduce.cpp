// SPDX-License-Identifier: BSD-3-Clause
// Sums and means, and the scaling of rows and columns, in ops that are differentiable already:
//
//   rowsum(A) = A 1        d at the entries of its row = (d 1ᵀ) on A
#include <gossamer/products.h>
#include <gossamer/reduce.h>

#include <ATen/ATen.h>

#include <array>

#include "core/csr.h"
#include "core/op.h"
#include "matrix/axis.h"

namespace gossamer {
namespace {

// Sums keep their precision under autocast.
struct WithoutAutocast {
  c10::impl::ExcludeDispatchKeyGuard off{
      c10::DispatchKeySet({c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA})};
};

// Sums of integers, in int64 as torch has them: exact in any order.
Tensor integer_sum(const PatternTensors& A, const Tensor& values, std::optional<int64_t> along) {
  const Tensor numbers = values.to(at::kLong);
  if (!along) return numbers.sum(0);
  auto size = values.sym_sizes().vec();
  size[0] = *along == 0 ? A.cols : A.rows;
  const Tensor place = *along == 0 ? A.indices : ops::row_indices(A.indptr, A.indices);
  return at::zeros_symint(size, numbers.options()).index_add(0, place, numbers);
}

}  // namespace

// The one entry of y 1ᵀ.
Tensor ops::total(const Tensor& y) {
  if (at::isIntegralType(y.scalar_type(), /*includeBool=*/true)) return y.sum(0);  // exact in any order
  const WithoutAutocast precise;
  const Tensor row = y.movedim(0, -1).unsqueeze(0), ones = at::ones_like(row);
  const auto integers = at::TensorOptions().dtype(at::kInt).device(y.device());
  const std::vector<Tensor> one_entry = {at::arange(2, integers), at::zeros({1}, integers)};
  const std::array<SymInt, 2> one_by_one = {1, 1};
  return sddmm(one_entry, row, ones.detach(), one_by_one).select(0, 0);
}

Tensor ops::norm(const Tensor& values) {
  const WithoutAutocast precise;
  if (values.is_complex()) return ops::norm(at::cat({at::real(values), at::imag(values)}));
  const Tensor squares = total(values * values), zero = squares.eq(0);
  return at::where(zero, squares, at::where(zero, at::ones_like(squares), squares).sqrt());
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
    check_values("sum", values, A);
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
  const auto both = coo(rows, cols, shape);
  const Tensor &indices = std::get<1>(both), &slot = std::get<2>(both);
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
        .def("total(Tensor y) -> Tensor", ops::total)
        .def("norm(Tensor values) -> Tensor", ops::norm)
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

// `op` names what needs one entry a place; what looks at stored entries alone does not.
Tensor extreme(const char* op, const SparseMatrix& A, std::optional<int64_t> dim, bool smallest, bool stored) {
  if (op) A.pattern().check_simple(op);
  const auto along = [=](auto&&... of_A) { return ops::extreme(of_A..., smallest, stored); };
  return reduced(along, A, dim);
}

Tensor arg_extreme(const char* op, const SparseMatrix& A, std::optional<int64_t> dim, bool smallest) {
  A.pattern().check_simple(op);
  return reduced([=](auto&&... of_A) { return ops::arg_extreme(of_A..., smallest); }, A, dim);
}

}  // namespace

Tensor SparseMatrix::sum(std::optional<int64_t> dim) const {
  return reduced(ops::sum, *this, dim);
}

Tensor SparseMatrix::mean(std::optional<int64_t> dim) const {
  return reduced(ops::mean, *this, dim);
}

Tensor SparseMatrix::amax(std::optional<int64_t> dim) const {
  return extreme("amax", *this, dim, /*smallest=*/false, /*stored=*/false);
}

Tensor SparseMatrix::amin(std::optional<int64_t> dim) const {
  return extreme("amin", *this, dim, /*smallest=*/true, /*stored=*/false);
}

Tensor SparseMatrix::smax(std::optional<int64_t> dim) const {
  return extreme(nullptr, *this, dim, /*smallest=*/false, /*stored=*/true);
}

Tensor SparseMatrix::smin(std::optional<int64_t> dim) const {
  return extreme(nullptr, *this, dim, /*smallest=*/true, /*stored=*/true);
}

Tensor SparseMatrix::smean(std::optional<int64_t> dim) const {
  return reduced(ops::stored_mean, *this, dim);
}

Tensor SparseMatrix::logsumexp(std::optional<int64_t> dim) const {
  return reduced(ops::logsumexp, *this, dim);
}

Tensor SparseMatrix::argmax(std::optional<int64_t> dim) const {
  return arg_extreme("argmax", *this, dim, /*smallest=*/false);
}

Tensor SparseMatrix::argmin(std::optional<int64_t> dim) const {
  return arg_extreme("argmin", *this, dim, /*smallest=*/true);
}

Tensor SparseMatrix::count_nonzero(std::optional<int64_t> dim) const {
  pattern().check_simple("count_nonzero");
  return reduced(ops::sum, with_values(values().ne(0)), dim);
}

Tensor SparseMatrix::norm() const {
  pattern().check_simple("norm");
  return ops::norm(values());
}

bool allclose(const SparseMatrix& A, const SparseMatrix& B, double rtol, double atol, bool equal_nan) {
  if (A.shape() != B.shape()) return false;
  A.pattern().check_simple("allclose"), B.pattern().check_simple("allclose");
  return ops::allclose(A.pattern().tensors(), A.values(), B.pattern().tensors(), B.values(), A.shape(), rtol, atol,
                       equal_nan);
}

}  // namespace gossamer
