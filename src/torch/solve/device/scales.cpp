// SPDX-License-Identifier: BSD-3-Clause
#include "solve/device/scales.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gossamer {
namespace {

// The exponent e of each number m 2^e, 1/2 ≤ m < 1, int64.
Tensor exponents(const Tensor& numbers) {
  return std::get<1>(at::frexp(numbers)).to(at::kLong);
}

// What brings numbers of this size between 1/2 and 1: 2^-e by its bits, exact on every device.
Tensor power_of_two(const Tensor& size) {
  return exponents(size).neg().add(1023).clamp(1, 2046).bitwise_left_shift(52).view(at::kDouble);
}

// The largest number of each row (column), which `of` names for each entry.
Tensor largest(const Tensor& sizes, const Tensor& of, int64_t n) {
  return at::zeros({n, sizes.size(1)}, sizes.options())
      .scatter_reduce(0, of.unsqueeze(1).expand_as(sizes), sizes, "amax");
}

struct Both {
  Tensor rows, columns;
};

Both one_after_the_other(const DevicePattern& A, const Tensor& sizes, bool rows_first) {
  const Tensor &first = rows_first ? A.rows : A.columns, &second = rows_first ? A.columns : A.rows;
  const Tensor one = power_of_two(largest(sizes, first, A.n));
  const Tensor other = power_of_two(largest(sizes.mul(one.index_select(0, first)), second, A.n));
  return rows_first ? Both{one, other} : Both{other, one};
}

// Σ log2² of the scaled entries of each head: how far they are from being of one size.
Tensor spread(const DevicePattern& A, const Tensor& sizes, const Both& s) {
  const Tensor scaled = sizes.mul(s.rows.index_select(0, A.rows)).mul(s.columns.index_select(0, A.columns));
  return exponents(scaled).sub(1).square().mul(sizes.ne(0)).sum(0);
}

}  // namespace

DeviceScales::DeviceScales(const DevicePattern& A, const Tensor& values, bool symmetric) {
  const Tensor sizes = values.abs();
  if (symmetric) {
    rows = columns = power_of_two(largest(sizes, A.rows, A.n).sqrt());
    return;
  }
  const Both by_rows = one_after_the_other(A, sizes, true), by_columns = one_after_the_other(A, sizes, false);
  const Tensor columns_first = spread(A, sizes, by_columns).lt(spread(A, sizes, by_rows));
  rows = at::where(columns_first, by_columns.rows, by_rows.rows);
  columns = at::where(columns_first, by_columns.columns, by_rows.columns);
}

Tensor DeviceScales::scaled(const DevicePattern& A, const Tensor& values) const {
  return values.mul(rows.index_select(0, A.rows)).mul(columns.index_select(0, A.columns));
}

}  // namespace gossamer
