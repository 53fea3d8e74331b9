// SPDX-License-Identifier: BSD-3-Clause
// Drives a method with products that C++ can do, and says what went wrong.
#pragma once
#include <gossamer/krylov.h>

#include <functional>
#include <string>

#include "krylov/methods/problem.h"

namespace gossamer::krylov {

struct Products {
  std::function<Tensor(const Tensor&)> A, At, M;
  std::function<void(const linalg::KrylovInfo&)> callback = {};
};

// (x, info) as ops::krylov_solve gives them. `what` is the solve in a message, "cg"; check: throw if it failed.
// `first`: the number of b's first column, if it is a part of more.
std::tuple<Tensor, Tensor> drive(const Problem& problem, const Products& products, const std::string& what, bool check,
                                 int64_t first = 0);

linalg::KrylovInfo info_of(const Tensor& numbers);

// Whether an unrolled method, which else returns what it has, broke down before its first step: x is then x0, a
// constant, and a backward would find no graph and could not say why.
bool broke_at_once(const Krylov& run, const Problem& problem);

// Throws ConvergenceError unless the method succeeded.
void check_converged(const Krylov& run, const Problem& problem, const std::string& what, int64_t first = 0);

}  // namespace gossamer::krylov
