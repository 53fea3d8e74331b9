// SPDX-License-Identifier: BSD-3-Clause
// Drives a method with products that C++ can do, and says what went wrong.
#pragma once
#include <gossamer/krylov.h>

#include <functional>
#include <string>

#include "krylov/problem.h"

namespace gossamer::krylov {

struct Products {
  std::function<Tensor(const Tensor&)> A, At, M;
  std::function<void(const linalg::KrylovInfo&)> callback = {};
};

// (x, info) as ops::krylov_solve gives them. `what` is the solve in a message, "cg"; check: throw if it failed.
std::tuple<Tensor, Tensor> drive(const Problem& problem, const Products& products, const std::string& what, bool check);

linalg::KrylovInfo info_of(const Tensor& numbers);

// Throws ConvergenceError unless the method succeeded.
void check_converged(const Krylov& run, const Problem& problem, const std::string& what);

// A function that Python leaves here and that says whether the user has pressed Ctrl-C. It is asked some times a second;
// `throw_if_interrupted` throws then.
void throw_if_interrupted();

}  // namespace gossamer::krylov
