// SPDX-License-Identifier: BSD-3-Clause
#include "krylov/drive.h"

#include <ATen/ATen.h>

#include "core/op.h"
#include "signals/signals.h"

namespace gossamer::krylov {

linalg::KrylovInfo info_of(const Tensor& numbers) {
  return {numbers.select(0, 0).to(at::kLong), numbers.select(0, 1), numbers.select(0, 2) != 0};
}

void check_converged(const Krylov& run, const Problem& problem, const std::string& what, int64_t first) {
  if (run.failure().empty()) return;
  const Tensor info = run.info().reshape({3, -1});
  const Tensor open = info[2] == 0;
  const int64_t worst = open.to(at::kDouble).mul(info[1].nan_to_num(INFINITY)).argmax().item<int64_t>();
  const std::string which = problem.b.dim() > 1 ? c10::str(" in column ", first + worst) : "";
  const bool squares = problem.method == "lsmr";
  throw ConvergenceError(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
      c10::str(what, ": no convergence", which, ": ", run.failure(), "; after ", info[0][worst].item<double>(),
               " iterations the residual ", squares ? "of the normal equations " : "", "is ",
               info[1][worst].item<double>(), ", wanted was ",
               squares ? c10::str(problem.rtol, " of that at x = 0") : c10::str(run.target(worst))));
}

bool broke_at_once(const Krylov& run, const Problem& problem) {
  const bool none = problem.maxiter > 0 && run.info().reshape({3, -1})[0].eq(0).all().item<bool>();
  return problem.unrolled && none && !run.failure().empty();
}

std::tuple<Tensor, Tensor> drive(const Problem& problem, const Products& products, const std::string& what, bool check,
                                 int64_t first) {
  const auto run = begin(problem);
  Tensor answer;
  for (Ask ask; (ask = run->next(answer)) != Ask::done;) {
    throw_if_interrupted();
    answer = Tensor();
    if (ask == Ask::report)
      products.callback(info_of(run->info()));
    else
      answer = (ask == Ask::A ? products.A : ask == Ask::At ? products.At : products.M)(run->question);
  }
  if (check || broke_at_once(*run, problem)) check_converged(*run, problem, what, first);
  return {run->solution(), run->info()};
}

}  // namespace gossamer::krylov
