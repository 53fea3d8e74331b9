// SPDX-License-Identifier: BSD-3-Clause
// Class: CholeskyPlan, what is known of a Cholesky factor from the pattern alone: the fronts, in which it is computed,
// and its entries, as which it is handed out. It travels as a handle (handles.h).
#pragma once
#include <ATen/ops/empty.h>
#include <gossamer/kernels/factor_entries.h>

#include <memory>

#include "core/csr.h"
#include "solve/handles.h"

namespace gossamer {

struct CholeskyPlan {
  std::shared_ptr<const AssemblyTree> tree;
  FactorEntries entries;

  // Numbers in the trapezoids of the fronts, those of the entries of L being given.
  std::unique_ptr<double[]> spread(const Tensor& values) const {
    std::unique_ptr<double[]> fronts(new double[tree->size()]);
    kernels::spread(entries, ptr<double>(values), tree->size(), fronts.get());
    return fronts;
  }
  Tensor collect(const double* fronts) const {
    const Tensor values = at::empty({entries.count()}, at::TensorOptions().dtype(at::kDouble));
    kernels::collect(entries, fronts, mutable_ptr<double>(values));
    return values;
  }
};

// The pattern of L as the ops take it, {indptr, indices}, must be that of the plan.
inline void check_factor_pattern(const char* op, const CholeskyPlan& plan, TensorList factor) {
  TORCH_CHECK_VALUE(factor.size() >= 2 && factor[0].dim() == 1 && factor[1].dim() == 1 &&
                        factor[0].size(0) == plan.tree->n + 1 && factor[1].size(0) == plan.entries.count(),
                    op, ": factor must be {indptr, indices} of L, with ", plan.entries.count(), " entries");
}

// float64 on the host, as the kernels take them, of so many entries.
inline Tensor checked_doubles(const char* op, const char* name, const Tensor& values, int64_t entries) {
  TORCH_CHECK_TYPE(values.is_floating_point(), op, ": ", name, " must be float32, float64, bfloat16 or float16, not ",
                   values.scalar_type());
  TORCH_CHECK_VALUE(values.dim() == 1, op, ": takes one matrix at a time, values (nnz,), not ", shape_text(values));
  TORCH_CHECK_VALUE(values.size(0) == entries, op, ": ", name, " has shape ", shape_text(values),
                    " but the pattern has ", entries, " entries");
  return values.to(at::kCPU, at::kDouble).contiguous();
}

}  // namespace gossamer
