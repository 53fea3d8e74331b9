// SPDX-License-Identifier: BSD-3-Clause
#include "core/csr.h"

#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "memory/pages.h"

namespace gossamer {

std::string shape_text(const Tensor& t) {
  std::ostringstream text;
  text << '(';
  for (int64_t k = 0; k < t.dim(); ++k) text << (k ? ", " : "") << t.sym_size(k);
  text << (t.dim() == 1 ? ",)" : ")");
  return text.str();
}

bool has_numbers(const Tensor& t) {
  return t.is_cpu() && !at::isTensorSubclassLike(t) && t.numel() > 0;
}

int64_t number_at(const Tensor& vector, int64_t place) {
  const int64_t at = place * vector.stride(0);
  return vector.scalar_type() == at::kInt ? ptr<int32_t>(vector)[at] : ptr<int64_t>(vector)[at];
}

void check_integers(const char* op, const char* name, const Tensor& t) {
  TORCH_CHECK_TYPE(t.scalar_type() == at::kInt || t.scalar_type() == at::kLong, op, ": ", name,
                   " must be int32 or int64, not ", t.scalar_type());
  TORCH_CHECK_VALUE(t.dim() == 1, op, ": ", name, " must have one dimension, not shape ", shape_text(t));
}

namespace {

void check_index(const char* op, const char* name, const Tensor& t, const Tensor& like) {
  check_integers(op, name, t);
  TORCH_CHECK_TYPE(t.scalar_type() == like.scalar_type(), op, ": ", name, " is ", t.scalar_type(), " but indptr is ",
                   like.scalar_type());
  TORCH_CHECK_VALUE(t.device() == like.device(), op, ": ", name, " is on ", t.device(), " but indptr is on ",
                    like.device());
}

// indptr ends at the number of indices. On a device this is not looked at: it would make every call wait for it.
void check_entries(const char* op, const Tensor& indptr, const Tensor& indices) {
  if (!has_numbers(indptr)) return;
  const int64_t entries = number_at(indptr, indptr.size(0) - 1);
  TORCH_CHECK_VALUE(entries == indices.size(0), op, ": indptr ends at ", entries, " but there are ", indices.size(0),
                    " indices");
}

// The first rows of runs, and the number of rows at the end; empty if there are none.
Tensor checked_runs(const char* op, const Tensor& runs, const Tensor& indptr, const SymInt& rows) {
  check_index(op, "runs", runs, indptr);
  if (!has_numbers(runs) || runs.size(0) == 0) return runs;
  const int64_t first = number_at(runs, 0), last = number_at(runs, runs.size(0) - 1);
  TORCH_CHECK_VALUE(first == 0 && last == rows, op, ": runs go from row ", first, " to ", last, ", not from 0 to ",
                    rows);
  const Tensor compact = runs.contiguous();
  const auto ascend = [&]<class I>(const I* row) {
    return std::is_sorted(row, row + compact.size(0), std::less_equal<I>());
  };
  TORCH_CHECK_VALUE(runs.scalar_type() == at::kInt ? ascend(ptr<int32_t>(compact)) : ascend(ptr<int64_t>(compact)), op,
                    ": runs must ascend");
  return compact;
}

}  // namespace

PatternTensors unpack(const char* op, TensorList pattern, SymIntArrayRef shape, bool t) {
  const size_t given = pattern.size();
  const bool has_transpose = given >= 5, has_runs = given == 3 || given == 7;
  TORCH_CHECK_VALUE(given == 2 || given == 5 || has_runs, op,
                    ": a pattern is {indptr, indices}, perhaps the transpose's three, perhaps runs: not ", given,
                    " tensors");
  TORCH_CHECK_VALUE(shape.size() == 2, op, ": shape must be (rows, cols), not ", shape.size(), " numbers");
  for (const SymInt& size : shape)  // that of a trace may have no number
    TORCH_CHECK_VALUE(size.maybe_as_int().value_or(0) >= 0, op, ": shape must not be negative, as ", size, " is");
  const Tensor &indptr = pattern[0], &indices = pattern[1];
  check_index(op, "indptr", indptr, indptr);
  check_index(op, "indices", indices, indptr);
  TORCH_CHECK_VALUE(indptr.sym_size(0) == shape[0] + 1, op, ": indptr has ", indptr.sym_size(0),
                    " entries but a matrix of ", shape[0], " rows needs ", shape[0] + 1);
  check_entries(op, indptr, indices);
  const auto runs = [&](size_t at, const SymInt& rows) {
    return has_runs ? checked_runs(op, pattern[at], indptr, rows) : Tensor();
  };
  if (!t)
    return {shape[0], shape[1], indptr.contiguous(), indices.contiguous(), {}, runs(given == 3 ? 2 : 5, shape[0])};
  if (!has_transpose) {
    const auto [indptr_t, indices_t, perm] = ops::transpose(indptr, indices, shape);
    return {shape[1], shape[0], indptr_t, indices_t, perm, {}};
  }
  check_index(op, "the transpose's indptr", pattern[2], indptr);
  check_index(op, "the transpose's indices", pattern[3], indptr);
  check_index(op, "the transpose's perm", pattern[4], indptr);
  TORCH_CHECK_VALUE(pattern[2].sym_size(0) == shape[1] + 1 && pattern[3].sym_size(0) == indices.sym_size(0) &&
                        pattern[4].sym_size(0) == indices.sym_size(0),
                    op, ": the transpose in the pattern is of another matrix");
  return {shape[1],         shape[0], pattern[2].contiguous(), pattern[3].contiguous(), pattern[4].contiguous(),
          runs(6, shape[1])};
}

void check_dense(const char* op, const char* name, const Tensor& dense, const PatternTensors& A, const SymInt& rows,
                 const char* rows_of_A, bool or_integers) {
  const bool floating = dense.is_floating_point() && dense.element_size() <= 8 && dense.element_size() >= 2;
  TORCH_CHECK_TYPE(floating || (or_integers && is_integral(dense)), op, ": ", name,
                   " must be float32, float64, bfloat16 or float16, not ", dense.scalar_type());
  TORCH_CHECK_VALUE(dense.device() == A.indptr.device(), op, ": ", name, " is on ", dense.device(),
                    " but the pattern is on ", A.indptr.device());
  TORCH_CHECK_VALUE(dense.dim() >= 1 && dense.sym_size(0) == rows, op, ": ", name, " has ",
                    dense.dim() ? dense.sym_size(0) : SymInt(0), " rows but A has ", rows, " ", rows_of_A);
}

bool is_integral(const Tensor& t) {
  return at::isIntegralType(t.scalar_type(), /*includeBool=*/true);
}

std::pair<Tensor, Tensor> without_integers(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() == b.scalar_type() || (!is_integral(a) && !is_integral(b))) return {a, b};
  const auto type = at::promote_types(a.scalar_type(), b.scalar_type());
  return {a.to(type), b.to(type)};
}

void check_same_dtype(const char* op, const char* name, const Tensor& dense, const char* other_name,
                      const Tensor& other) {
  TORCH_CHECK_TYPE(dense.scalar_type() == other.scalar_type(), op, ": ", name, " is ", dense.scalar_type(), " but ",
                   other_name, " is ", other.scalar_type());
}

Tensor with_compact_rows(const Tensor& X) {
  int64_t step = 1;
  for (int64_t k = X.dim() - 1; k > 0; --k) {
    if (X.size(k) != 1 && X.stride(k) != step) return X.contiguous();
    step *= X.size(k);
  }
  return X;
}

Tensor with_columns(const Tensor& values, const Tensor& X) {
  return values.dim() == 2 && X.dim() == 2 ? X.unsqueeze(-1) : X;
}

std::vector<Tensor> contiguous(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(t.defined() ? t.contiguous() : t);
  return all;
}

Tensor empty_for(const Tensor& t) {
  return empty_result(t.sym_sizes(), t.options());
}

at::ScalarType sum_type(const Tensor& t) {
  if (is_integral(t)) return at::kLong;
  return t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

Tensor scratch_for(const Tensor& t, int64_t numbers) {
  return empty_result({SymInt(numbers)}, t.options().dtype(sum_type(t)));
}

}  // namespace gossamer
