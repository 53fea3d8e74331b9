// SPDX-License-Identifier: BSD-3-Clause
#include "krylov/drive.h"

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>

#include "core/op.h"

namespace gossamer::krylov {
namespace {

// Functions of Python's library, which Python gives: the lock, and what looks for signals.
struct Signals {
  int (*lock)();
  int (*look)();
  void (*clear)();
  void (*send_again)();
  void (*unlock)(int);
};
std::atomic<const Signals*> signals{nullptr};

void set_signals(at::IntArrayRef a) {
  TORCH_CHECK_VALUE(a.size() == 5, "krylov_signals: five addresses are wanted, not ", a.size());
  const auto given = [&]<class F>(size_t k, F*) { return reinterpret_cast<F*>(a[k]); };
  static Signals of_python;
  of_python = {given(0, of_python.lock), given(1, of_python.look), given(2, of_python.clear),
               given(3, of_python.send_again), given(4, of_python.unlock)};
  signals = &of_python;
}

const Composites composites = Composites().def("krylov_signals(int[] functions) -> ()", set_signals);

}  // namespace

void throw_if_interrupted() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last = Clock::now();
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(50)) return;
  last = now;
  const Signals* python = signals.load();
  if (!python) return;
  const int state = python->lock();
  const bool raised = python->look() != 0;
  if (raised) python->clear(), python->send_again();
  python->unlock(state);
  TORCH_CHECK(!raised, "krylov: interrupted by a signal");
}

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
  if (check) check_converged(*run, problem, what, first);
  return {run->solution(), run->info()};
}

}  // namespace gossamer::krylov
