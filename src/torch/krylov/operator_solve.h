// SPDX-License-Identifier: BSD-3-Clause
// A solve with an operator that is a function of C++, and its derivative in the operator's parameters.
#pragma once
#include <gossamer/krylov.h>

#include <string>
#include <tuple>

namespace gossamer::krylov {

// (x, info) as ops::krylov_solve gives them. options: with rtol, adjoint_rtol and maxiter filled in.
std::tuple<Tensor, Tensor> operator_solve(const std::string& method, const linalg::LinearOperator& A, const Tensor& b,
                                          const linalg::KrylovOptions& options, bool t = false, bool m_t = false);

}  // namespace gossamer::krylov
