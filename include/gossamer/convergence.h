// SPDX-License-Identifier: BSD-3-Clause
// What an iteration throws that does not arrive.
#pragma once
#include <c10/util/Exception.h>

namespace gossamer {

// An iteration did not reach its tolerance; the message has its steps and how far it came. Python sees it as
// gs.ConvergenceError, which is torch.linalg.LinAlgError, as torch.linalg raises where it does not converge.
class ConvergenceError : public c10::LinAlgError {
  using c10::LinAlgError::LinAlgError;
};

// Throws ConvergenceError(`op: what`).
template <class... What>
[[noreturn]] void throw_not_converged(const char* op, const What&... what) {
  throw ConvergenceError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, c10::str(op, ": ", what...));
}

}  // namespace gossamer
