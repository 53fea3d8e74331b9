// SPDX-License-Identifier: BSD-3-Clause
// A method that Python drives: operators, callbacks and unrolled iterations.
//
//   run = krylov_begin(b, x0, …)
//   while (ask, question = krylov_next(run, answer))[0]: answer = …
//   x, info = krylov_end(run, check, what)
//
// Nothing is differentiated here: an unrolled run consists of ordinary ops, and the others are below Python's autograd.
#include <ATen/ATen.h>

#include "core/op.h"
#include "krylov/drive.h"
#include "solve/handles.h"

namespace gossamer {
namespace {

struct Driven {
  krylov::Problem problem;
  std::shared_ptr<krylov::Krylov> run;
};

Tensor krylov_begin(const Tensor& b, const std::optional<Tensor>& x0, int64_t rows, int64_t cols,
                    c10::string_view method, double rtol, double atol, int64_t maxiter, int64_t restart, double damp,
                    bool preconditioned, bool m_of_rows, bool unrolled, bool reports, c10::string_view group) {
  const krylov::Problem problem{std::string(method),
                                rows,
                                cols,
                                b,
                                x0,
                                rtol,
                                atol,
                                maxiter,
                                restart,
                                damp,
                                preconditioned,
                                m_of_rows,
                                unrolled,
                                reports,
                                std::string(group)};
  return handle_of<Driven>({std::make_shared<Driven>(Driven{problem, krylov::begin(problem)})}, {});
}

std::tuple<int64_t, Tensor> krylov_next(const Tensor& run, const std::optional<Tensor>& answer) {
  const auto driven = object_of<Driven>(run);
  const krylov::Ask ask = driven->run->next(answer.value_or(Tensor()));
  if (ask == krylov::Ask::report) return {static_cast<int64_t>(ask), driven->run->info()};
  if (ask == krylov::Ask::done) return {0, run};
  return {static_cast<int64_t>(ask), driven->run->question};
}

std::tuple<Tensor, Tensor> krylov_end(const Tensor& run, bool check, c10::string_view what) {
  const auto driven = object_of<Driven>(run);
  if (check || krylov::broke_at_once(*driven->run, driven->problem))
    krylov::check_converged(*driven->run, driven->problem, std::string(what));
  return {driven->run->solution(), driven->run->info()};
}

const Composites composites =
    Composites()
        .def(
            "krylov_begin(Tensor b, Tensor? x0, int rows, int cols, str method, float rtol, float atol, int maxiter, "
            "int restart, float damp, bool preconditioned, bool m_of_rows, bool unrolled, bool reports, str group='') "
            "-> Tensor",
            krylov_begin)
        .def("krylov_next(Tensor run, Tensor? answer) -> (int, Tensor)", krylov_next)
        .def("krylov_end(Tensor run, bool check, str what) -> (Tensor, Tensor)", krylov_end);

}  // namespace
}  // namespace gossamer
