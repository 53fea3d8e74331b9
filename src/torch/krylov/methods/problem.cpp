// SPDX-License-Identifier: BSD-3-Clause
#include "krylov/methods/problem.h"

#include "krylov/methods/solve.h"

namespace gossamer::krylov {

bool is_symmetric_method(const std::string& method) {
  return method == "cg" || method == "minres";
}

std::shared_ptr<Krylov> begin(const Problem& problem) {
  const auto& [method, rows, cols, b, x0, rtol, atol, maxiter, restart, damp, preconditioned, m_of_rows, unrolled,
               reports, group] = problem;
  const bool squares = method == "lsmr";
  TORCH_CHECK_VALUE(squares || is_symmetric_method(method) || method == "gmres" || method == "bicgstab",
                    "krylov: ", method, " is none of cg, minres, gmres, bicgstab, lsmr");
  const char* op = method.c_str();
  TORCH_CHECK_VALUE(squares || rows == cols, op, ": the matrix must be square, not ", rows, " x ", cols);
  TORCH_CHECK_TYPE(b.scalar_type() == at::kFloat || b.scalar_type() == at::kDouble, op,
                   ": b must be float32 or float64, not ", b.scalar_type());
  TORCH_CHECK_VALUE((b.dim() == 1 || b.dim() == 2) && b.size(0) == rows, op, ": b must be (", rows, ",) or (", rows,
                    ", k), not ", shape_text(b));
  if (x0) {
    TORCH_CHECK_VALUE(x0->dim() == b.dim() && x0->size(0) == cols && x0->sizes().slice(1) == b.sizes().slice(1), op,
                      ": x0 must be ", b.dim() == 1 ? "(" : "(n, k) = (", cols, ", …), as many columns as b ",
                      shape_text(b), " has, not ", shape_text(*x0));
    TORCH_CHECK_TYPE(x0->scalar_type() == b.scalar_type(), op, ": x0 must be ", b.scalar_type(), " as b is, not ",
                     x0->scalar_type());
    TORCH_CHECK_VALUE(!squares || (damp == 0 && rows >= cols), op,
                      ": x0 is for problems with one solution, without damp and not wider than high");
  }
  TORCH_CHECK_VALUE(rtol >= 0 && atol >= 0 && damp >= 0, op, ": rtol, atol and damp must not be negative, not ", rtol,
                    ", ", atol, ", ", damp);
  TORCH_CHECK_VALUE(maxiter >= 0 && restart >= 1, op, ": maxiter must be at least 0 and restart at least 1, not ",
                    maxiter, ", ", restart);
  TORCH_CHECK_NOT_IMPLEMENTED(!squares || group.empty(), op,
                              ": least squares are not solved on many processes; cg, minres, gmres, bicgstab are");
  if (unrolled) return std::make_shared<Run<Recorded>>(problem);
  return std::make_shared<Run<Fused>>(problem);
}

}  // namespace gossamer::krylov
