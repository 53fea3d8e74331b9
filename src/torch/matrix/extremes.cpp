// SPDX-License-Identifier: BSD-3-Clause
// The largest and smallest numbers of rows, columns and all of a matrix, and where they are.
//
//   max = the value at its position        min A = −max −A        logsumexp v = m + log Σ exp(v − m),  m = max v
#include <gossamer/reduce.h>

#include <ATen/ATen.h>
#include <gossamer/kernels/argmax.h>

#include <limits>

#include "core/batch.h"
#include "core/csr.h"
#include "core/launch.h"
#include "core/op.h"
#include "matrix/axis.h"

namespace gossamer {
namespace {

Tensor argmax(const Tensor& indptr, const Tensor& values, SymInt cols, bool stored) {
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
    if constexpr (Host<decltype(exec)>) {
      kernels::row_argmax(exec, A, stored, mutable_ptr<int64_t>(at));
    } else {
      const Tensor scratch = at::empty({kernels::piece_places(A.nnz) * A.heads}, at.options());
      kernels::row_argmax(exec, A, stored, mutable_ptr<int64_t>(at), mutable_ptr<int64_t>(scratch));
    }
  });
  return at;
}

Tensor argmax_batched(const Tensor& indptr, const Tensor& values, SymInt cols, bool stored) {
  return more_heads("amax", {indptr}, values,
                    [&](const Tensor& v) { return ops::row_argmax(indptr, v, cols, stored); });
}

const Op<decltype(ops::row_argmax)> argmax_op{{
    .schema = "row_argmax(Tensor indptr, Tensor values, SymInt cols, bool stored=False) -> Tensor",
    .forward = argmax,
    .batched = argmax_batched,
}};

// What the public functions are called, for messages.
const char* name_of(bool smallest, bool stored) {
  return stored ? (smallest ? "smin" : "smax") : (smallest ? "amin" : "amax");
}

// A pattern whose rows are what is reduced: A's rows (dim 1), its columns (dim 0), or all of it as one row (no dim).
struct Groups {
  Tensor indptr, indices;  // indices are A's, and mean nothing, for all of it
  Tensor values;
  SymInt cols;
};

Groups groups_of(const char* op, TensorList pattern, const Tensor& values, SymIntArrayRef shape,
                 std::optional<int64_t> dim) {
  const PatternTensors A = unpack(op, pattern, shape, /*t=*/false);
  if (!dim) {
    const Tensor ends = at::arange(2, A.indptr.options()) * values.size(0);
    const int64_t m = A.rows.expect_int(), n = A.cols.expect_int(), most = std::numeric_limits<int64_t>::max();
    return {ends, A.indices, values, n == 0 || m <= most / n ? m * n : most};
  }
  if (*dim == 1) return {A.indptr, A.indices, values, A.cols};
  const PatternTensors T = unpack(op, pattern, shape, /*t=*/true);
  return {T.indptr, T.indices, values.index_select(0, T.perm), T.cols};
}

void check(const char* op, const Tensor& values, const PatternTensors& A, std::optional<int64_t> dim, bool smallest,
           bool stored) {
  TORCH_CHECK_TYPE(!values.is_complex(), op, ": complex numbers have no order");
  check_values(op, values, A);
  if (stored) return;
  const char* which = smallest ? "smallest" : "largest";
  TORCH_CHECK_VALUE(dim == 0 || A.cols > 0, op, ": a matrix without columns has no ", which, " number");
  TORCH_CHECK_VALUE(dim == 1 || A.rows > 0, op, ": a matrix without rows has no ", which, " number");
}

// [k, …] → the k of its group, for each entry.
Tensor group_of_entry(const Groups& groups) {
  return ops::row_indices(groups.indptr, groups.indices);
}

// per_entry (nnz) with as many dimensions as the values.
Tensor like_values(const Tensor& per_entry, const Tensor& values) {
  return values.dim() == 2 ? per_entry.unsqueeze(1).expand_as(values) : per_entry;
}

// By group, the best of `numbers` and of what it starts with.
Tensor best_of(const Tensor& start, const Tensor& group, const Tensor& numbers, bool smallest) {
  return start.scatter_reduce(0, like_values(group, numbers), numbers, smallest ? "amin" : "amax");
}

// (groups, [H]): `given` where a group has, for every column, an entry; `otherwise` where it has not.
Tensor where_full(const Groups& groups, bool stored, const Tensor& given, const Tensor& otherwise) {
  const Tensor length = groups.indptr.diff().to(at::kLong);
  const Tensor full = stored ? length > 0 : length == groups.cols.expect_int();
  return at::where(groups.values.dim() == 2 ? full.unsqueeze(1) : full, given, otherwise);
}

// Integers and booleans have no kernel and no derivative: torch's own reduction does, in int64.
Tensor integer_extreme(const Groups& groups, bool smallest, bool stored) {
  const Tensor numbers = groups.values.to(at::kLong);
  auto size = numbers.sizes().vec();
  size[0] = groups.indptr.size(0) - 1;
  using Limits = std::numeric_limits<int64_t>;
  const Tensor zero = at::zeros(size, numbers.options());
  const Tensor worst = at::full_like(zero, smallest ? Limits::max() : Limits::lowest());
  const Tensor start = where_full(groups, stored, worst, zero);
  return best_of(start, group_of_entry(groups), numbers, smallest).to(groups.values.scalar_type());
}

Tensor largest(const Groups& groups, bool stored) {
  const Tensor& values = groups.values;
  const Tensor at = ops::row_argmax(groups.indptr, values.detach(), groups.cols, stored);
  auto one = values.sym_sizes().vec();
  one[0] = 1;
  return at::cat({values, values.new_zeros_symint(one)}).gather(0, at);  // the last entry stands for what is not stored
}

// (rows, [H]): the first column of each row that has the extreme number `best`, stored or not. The first column that is
// not stored is the number of entries whose column is their place in the row, for columns ascend.
Tensor first_columns(const Groups& groups, const Tensor& best) {
  const Tensor row = group_of_entry(groups), column = groups.indices.to(at::kLong);
  const int64_t rows = groups.indptr.size(0) - 1, cols = groups.cols.expect_int(), nnz = column.size(0);
  const Tensor place = at::arange(nnz, column.options()) - groups.indptr.to(at::kLong).index_select(0, row);
  Tensor gap = at::zeros({rows}, column.options()).index_add(0, row, column.eq(place).to(at::kLong));
  if (best.dim() == 2) gap = gap.unsqueeze(1);
  const Tensor start = at::where(best.eq(0), gap.expand_as(best), at::full_like(best, cols, column.options()));
  const Tensor& values = groups.values;
  const Tensor hit = values.eq(best.index_select(0, row)).logical_or(values.isnan());
  return best_of(start, row, at::where(hit, like_values(column, values), cols), /*smallest=*/true);
}

}  // namespace

Tensor ops::row_argmax(const Tensor& indptr, const Tensor& values, SymInt cols, bool stored) {
  return argmax_op(indptr, values, std::move(cols), stored);
}

Tensor ops::extreme(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim,
                    bool smallest, bool stored) {
  const char* op = name_of(smallest, stored);
  const auto along = dim ? std::optional(axis(op, *dim)) : std::nullopt;
  check(op, values, unpack(op, pattern, shape, /*t=*/false), along, smallest, stored);
  const bool integers = at::isIntegralType(values.scalar_type(), /*includeBool=*/true);
  const Groups groups = groups_of(op, pattern, smallest && !integers ? -values : values, shape, along);
  const Tensor found = integers ? integer_extreme(groups, smallest, stored) : largest(groups, stored);
  const Tensor best = smallest && !integers ? -found : found;
  return along ? best : best.select(0, 0);
}

Tensor ops::arg_extreme(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim,
                        bool smallest) {
  const char* op = smallest ? "argmin" : "argmax";
  const Tensor numbers = values.detach();
  const auto along = dim ? std::optional(axis(op, *dim)) : std::nullopt;
  check(op, numbers, unpack(op, pattern, shape, /*t=*/false), along, smallest, /*stored=*/false);
  const int64_t of = along.value_or(1);
  const Tensor best = extreme(pattern, numbers, shape, of, smallest, /*stored=*/false);
  const Tensor at = first_columns(groups_of(op, pattern, numbers, shape, of), best);
  if (along) return at;
  const Tensor row = smallest ? best.argmin(0, /*keepdim=*/true) : best.argmax(0, /*keepdim=*/true);
  return (row * shape[1].expect_int() + at.gather(0, row)).select(0, 0);
}

Tensor ops::stored_mean(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim) {
  const auto along = dim ? std::optional(axis("smean", *dim)) : std::nullopt;
  check_values("smean", values, unpack("smean", pattern, shape, /*t=*/false));
  const Tensor length = groups_of("smean", pattern, values, shape, along).indptr.diff().clamp_min(1);
  const Tensor total = sum(pattern, values, shape, dim);
  if (!along) return total / length.select(0, 0);
  return total / (values.dim() == 2 ? length.unsqueeze(1) : length).to(total.scalar_type());
}

Tensor ops::logsumexp(TensorList pattern, const Tensor& values, SymIntArrayRef shape, std::optional<int64_t> dim) {
  const bool down = dim && axis("logsumexp", *dim) == 0;
  const Tensor top = extreme(pattern, values.detach(), shape, dim, /*smallest=*/false, /*stored=*/true);
  const Tensor shift = at::where(top.isfinite(), top, 0);  // else inf − inf
  const Tensor at_entries = dim ? spread(pattern, shift, shape, /*cols=*/down) : shift;
  return shift + sum(pattern, (values - at_entries).exp(), shape, dim).log();
}

static const Composites composites =
    Composites()
        .def("extreme(Tensor[] pattern, Tensor values, SymInt[] shape, int? dim, bool smallest, bool stored) -> Tensor",
             ops::extreme)
        .def("arg_extreme(Tensor[] pattern, Tensor values, SymInt[] shape, int? dim, bool smallest) -> Tensor",
             ops::arg_extreme)
        .def("stored_mean(Tensor[] pattern, Tensor values, SymInt[] shape, int? dim=None) -> Tensor", ops::stored_mean)
        .def("logsumexp(Tensor[] pattern, Tensor values, SymInt[] shape, int? dim=None) -> Tensor", ops::logsumexp);

}  // namespace gossamer
