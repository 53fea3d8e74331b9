// SPDX-License-Identifier: BSD-3-Clause
// A problem for a Krylov method, and a method at work on it, whichever it is.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "krylov/methods/steps.h"

namespace gossamer::krylov {

struct Problem {
  std::string method;
  int64_t rows, cols;
  Tensor b;                  // (rows,) or (rows, k)
  std::optional<Tensor> x0;  // (cols,) or (cols, k)
  double rtol, atol;
  int64_t maxiter;
  int64_t restart = 30;  // gmres: how many vectors are kept
  double damp = 0;       // lsmr
  bool preconditioned = false;
  bool m_of_rows = false;  // lsmr, square: M approximates (A Aᵀ)⁻¹ instead of (Aᵀ A)⁻¹
  bool unrolled = false;   // in ordinary ops
  bool reports = false;    // stop after every iteration
  std::string group = {};  // the processes that have parts of the rows; rows and cols are those of this one

  // lsmr: M is for the rows, not for the columns. It is for the fewer.
  bool weighs_rows() const { return rows < cols || (rows == cols && m_of_rows); }
};

// Reverse communication: next(answer) until it says done; `question` is what is to be multiplied.
class Krylov {
 public:
  virtual ~Krylov() = default;
  virtual Ask next(const Tensor& answer) = 0;
  virtual Tensor solution() const = 0;  // of b's columns
  // (3, columns of b), float64: iterations, ‖b - A x‖ (lsmr: of the normal equations), and whether that is small
  // enough. While it runs, as far as is known.
  virtual Tensor info() const = 0;
  virtual std::string failure() const = 0;          // a sentence; empty if all columns converged
  virtual double target(int64_t column) const = 0;  // of the residual

  Tensor question;
};

// Throws for a method that does not exist or a problem that is not well formed.
std::shared_ptr<Krylov> begin(const Problem& problem);

bool is_symmetric_method(const std::string& method);

}  // namespace gossamer::krylov
