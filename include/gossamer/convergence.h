// SPDX-License-Identifier: BSD-3-Clause
// The error of iterations that do not arrive.
#pragma once
#include <c10/util/Exception.h>

namespace gossamer {

// An iteration that did not reach its tolerance: what it has is not returned. Python sees it as gs.ConvergenceError, a
// RuntimeError.
class ConvergenceError : public c10::Error {
  using c10::Error::Error;
};

// Throws ConvergenceError(`op: what`).
template <class... What>
[[noreturn]] void throw_not_converged(const char* op, const What&... what) {
  throw ConvergenceError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, c10::str(op, ": ", what...));
}

}  // namespace gossamer
