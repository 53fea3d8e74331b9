// SPDX-License-Identifier: BSD-3-Clause
// Matrices with the same numbers in another shape, and with another diagonal.
#include <gossamer/products.h>
#include <gossamer/structure.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/csr.h"

namespace gossamer {

// Read row by row, entry (i, j) is number i n + j in both shapes, so that the order of the entries stays.
SparseMatrix SparseMatrix::reshape(int64_t new_rows, int64_t new_cols) const {
  const int64_t m = rows(), n = cols();
  TORCH_CHECK_VALUE(n == 0 || m <= std::numeric_limits<int64_t>::max() / n, "reshape: ", m, " x ", n,
                    " places are more than int64 can count");
  const int64_t r = new_rows == -1 && new_cols > 0 ? m * n / new_cols : new_rows;
  const int64_t c = new_cols == -1 && new_rows > 0 ? m * n / new_rows : new_cols;
  TORCH_CHECK_VALUE(r >= 0 && c >= 0 && (r == 0 || c <= std::numeric_limits<int64_t>::max() / r) && r * c == m * n,
                    "reshape: ", m, " x ", n, " numbers do not fit the shape (", new_rows, ", ", new_cols, ")");
  pattern().check_simple("reshape");
  const auto reshaped = pattern().keep<Pattern>("reshape " + std::to_string(r) + " " + std::to_string(c), [&] {
    const Tensor place = pattern().row_indices() * n + pattern().indices();
    const int64_t width = std::max<int64_t>(c, 1);
    const auto [indptr, indices, slot] = ops::coo(place.floor_divide(width), place.remainder(width), {r, c});
    return Pattern(indptr, indices, {r, c}, /*check=*/false);
  });
  return SparseMatrix(reshaped, values());
}

SparseMatrix SparseMatrix::with_diagonal(const Tensor& v, int64_t k) const {
  pattern().check_simple("with_diagonal");
  const int64_t length = diagonal(k).size(0);
  TORCH_CHECK_VALUE(v.dim() == 0 || v.size(0) == length, "with_diagonal: v has shape ", shape_text(v), " but diagonal ",
                    k, " has ", length, " entries");
  const auto on_diagonal = pattern().keep<Pattern>("diagonal pattern " + std::to_string(k), [&] {
    const Tensor i = at::arange(length, pattern().indptr().options().dtype(at::kLong));
    const auto [indptr, indices, slot] =
        ops::coo(i + std::max<int64_t>(-k, 0), i + std::max<int64_t>(k, 0), pattern().shape());
    const auto like = pattern().indices().options();
    return Pattern(indptr.to(like), indices.to(like), pattern().shape(), /*check=*/false);
  });
  const auto both = pattern().merge(on_diagonal);
  const Tensor whole = ops::place(values(), both.at_A, both.pattern.nnz());
  auto size = whole.sizes().vec();
  size[0] = length;
  const Tensor given = v.to(whole.options().requires_grad(false));
  const Tensor placed = (whole.dim() == 2 && given.dim() == 1 ? given.unsqueeze(1) : given).expand(size);
  return SparseMatrix(both.pattern, whole.index_copy(0, both.at_B.to(at::kLong), placed));
}

std::tuple<Tensor, Tensor> SparseMatrix::nonzero() const {
  pattern().check_simple("nonzero");
  const Tensor stored = values().ne(0), any = values().dim() == 2 ? stored.any(1) : stored;
  const Tensor at = any.nonzero().select(1, 0);
  return {pattern().row_indices().index_select(0, at), pattern().indices().index_select(0, at).to(at::kLong)};
}

}  // namespace gossamer
