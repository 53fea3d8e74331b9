// SPDX-License-Identifier: BSD-3-Clause
// Smoothed aggregation, level by level:
//
//   A_F   A without weak entries, which are added to the diagonal        (one row a node; else A_F = A)
//   P = (I - ω / λ D⁻¹ A_F) T,   A_next = Pᵀ A P                          D = diag(A), λ the largest eigenvalue of D⁻¹
//   A_F
//
// A LevelPlan is what is found once, from the pattern and the first values: which entries are strong, the aggregates, T
// and λ. The numbers on it are an expression in ops, differentiable in the values of A and in ω.
#pragma once
#include <vector>

#include "precondition/matrix.h"

namespace gossamer {

struct LevelPlan {
  SparseMatrix T;     // tentative prolongation, (n, next n); next n is 0 if nothing in A is strong
  Pattern kept;       // of A_F
  double lambda = 1;  // an estimate
};

// The rows of a level that stand for one node, and the vectors that A nearly maps to zero.
struct Nodes {
  std::vector<int64_t> ptr;
  std::vector<double> B;
  int64_t vectors = 1;
};

// A with a whole diagonal that is nowhere zero: rows without a diagonal entry, or with a zero there, get a 1.
SparseMatrix with_whole_diagonal(const SparseMatrix& A);
Tensor diagonal_places(const Pattern& A);  // where a whole diagonal is, as the pattern's integers; kept

// The plan for A, which has a whole diagonal, and the nodes of the next level in place of those of this one.
LevelPlan plan_level(const SparseMatrix& A, Nodes& nodes, double theta);

// P for other values on the same pattern; omega: ().
SparseMatrix prolongation(const LevelPlan& plan, const SparseMatrix& A, const Tensor& omega);

}  // namespace gossamer
