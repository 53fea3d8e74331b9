// SPDX-License-Identifier: BSD-3-Clause
// The seam to the libraries that factor sparse matrices. An engine analyses a pattern once, factors any values on it,
// and solves with the factors any number of times. Everything is float64, by columns, with 32-bit indices.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gossamer {

struct AssemblyTree;  // kernels/assembly_tree.h

// A square matrix by columns: rows of column j are rows[ptr[j]] … rows[ptr[j + 1] - 1], ascending.
struct SquareColumns {
  int n = 0;
  const int* ptr = nullptr;
  const int* rows = nullptr;
  const double* values = nullptr;
};

// In which order an engine eliminates: row i comes as number rows[i], column j as number columns[j]. Then the pivots
// are on the diagonal.
struct PivotOrder {
  std::vector<int> rows, columns;
};

// A pivot that is smaller than the largest one by this was lost in its rounding.
inline constexpr double rounding_of_pivots = 1e-16;

// What a Cholesky factor knows beside solutions if its blocks are ours: the inverse, symmetric as A is, on the entries
// of the pattern, in its order; and its derivative -(A⁻¹ G A⁻¹) in a direction G that is symmetric or skew.
class InverseBlocks {
 public:
  virtual ~InverseBlocks() = default;
  virtual int64_t entries() const = 0;  // of the pattern
  virtual void inverse(double* values) const = 0;
  virtual void tangent(const double* direction, bool skew, double* values) const = 0;
};

// What remains of a matrix after its numeric factorisation. Solving changes nothing: threads may share it.
class EngineFactor {
 public:
  virtual ~EngineFactor() = default;
  // x ← A⁻¹ x, or A⁻ᵀ x if t; n × columns, one column after the other.
  virtual void solve(double* x, int64_t columns, bool t) const = 0;
  // The same, one row after the other.
  virtual void solve_rows(int64_t n, double* x, int64_t columns, bool t) const;
  // |pivot| of column k of the matrix: their product is |det A|, and a tiny one shows what is singular.
  virtual double pivot(int64_t k) const = 0;
  virtual int sign() const = 0;  // of det A
  // A column whose pivot was lost in the rounding of the largest one, which means that the matrix, scaled as it is, is
  // singular to working precision; or -1.
  virtual int64_t lost_pivot(int64_t n) const;
  virtual PivotOrder order() const { return {}; }  // Eigen and our own tell it, and it serves devices
  virtual const InverseBlocks* blocks() const { return nullptr; }
};

// A factor; or none, and the column at which the matrix turned out singular (or not positive definite); or none and -1
// where the engine cannot tell and another one must be asked.
struct Factored {
  std::unique_ptr<EngineFactor> factor;
  int64_t column = -1;
};

// What can be known from the pattern alone; shared by all matrices on it.
class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual Factored factorize(const SquareColumns& A) const = 0;
  virtual PivotOrder order() const { return {}; }                               // of our own Cholesky factorisation
  virtual std::shared_ptr<const AssemblyTree> tree() const { return nullptr; }  // and its fronts
};

enum class FactorKind { automatic, lu, cholesky };

// lu: with a fill-reducing ordering and pivoting; breaks down at a column without a pivot.
// cholesky: LDLᵀ or LLᵀ of the lower triangle; breaks down at a pivot that is not positive.
struct Engine {
  const char* name;
  std::string (*version)();                                 // empty where the library is not installed
  std::unique_ptr<Analysis> (*lu)(const SquareColumns& A);  // null: it has none
  std::unique_ptr<Analysis> (*cholesky)(const SquareColumns& A);

  bool has(FactorKind kind) const { return (kind == FactorKind::lu ? lu : cholesky) && !version().empty(); }
};

extern const Engine multifrontal, eigen, cholmod, umfpack, pardiso;  // the first one is ours, "gossamer"

// The multiplications of a Cholesky factorisation of A + Aᵀ, ordered by Eigen's AMD.
double multiplications(const SquareColumns& A);

// The engines to ask, one after the other; the last is ours for Cholesky, and Eigen for LU. `wanted` is a name or
// "auto": what GOSSAMER_ENGINE says, or else the best for an LU of so many multiplications a row.
std::vector<const Engine*> engines_for(FactorKind kind, const std::string& wanted,
                                       const std::function<double()>& multiplications_a_row);

std::string engine_names();

// By what a matrix on a CUDA device is factored there: "device", our own kernels, or "cudss", if `wanted`, a name or
// "auto" as above, says so; empty if it names an engine of the host, to which the matrix is copied.
std::string device_engine(const std::string& wanted);
std::string device_engine_names();

// +1 or -1; `order` is a permutation of 0 … n - 1.
int parity(std::vector<int> order);

}  // namespace gossamer
