// SPDX-License-Identifier: BSD-3-Clause
// The seam to the libraries that factor sparse matrices. An engine analyses a pattern once, factors any values on it,
// and solves with the factors any number of times. Everything is float64, by columns, with 32-bit indices.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace gossamer {

// A square matrix by columns: rows of column j are rows[ptr[j]] … rows[ptr[j + 1] - 1], ascending.
struct SquareColumns {
  int n = 0;
  const int* ptr = nullptr;
  const int* rows = nullptr;
  const double* values = nullptr;
};

// What remains of a matrix after its numeric factorisation. Solving changes nothing: threads may share it.
class Factor {
 public:
  virtual ~Factor() = default;
  // x ← A⁻¹ x, or A⁻ᵀ x if t; n × columns, one column after the other.
  virtual void solve(double* x, int64_t columns, bool t) const = 0;
  // |pivot| of column k of the matrix, for the determinant and to see what is singular.
  virtual double pivot(int64_t k) const = 0;
};

// A factor, or the column at which the engine broke down.
struct Factored {
  std::unique_ptr<Factor> factor;
  int64_t column = -1;
};

// What can be known from the pattern alone; shared by all matrices on it.
class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual Factored factorize(const SquareColumns& A) const = 0;
};

// LU with a fill-reducing column ordering and partial pivoting; breaks down at a column without a pivot.
std::unique_ptr<Analysis> analyze_lu(const SquareColumns& A);
// LDLᵀ with a fill-reducing ordering, of the lower triangle; breaks down at a pivot that is not positive.
std::unique_ptr<Analysis> analyze_cholesky(const SquareColumns& A);

std::string engine_names();

}  // namespace gossamer
