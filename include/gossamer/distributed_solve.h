// SPDX-License-Identifier: BSD-3-Clause
// Sums over the rows of all processes, and iterative solves with matrices of distributed.h. All ranks call them.
//
//   auto A = gossamer::distributed::scatter(gossamer::poisson({100, 100}, torch::kFloat64), "");
//   auto b = torch::ones(A.local_shape()[0], torch::kFloat64);                      // this rank's rows
//   auto [x, info] = gossamer::linalg::cg(A, b, {.M = gossamer::linalg::two_level(A)});
#pragma once
#include <string_view>

#include <gossamer/distributed.h>
#include <gossamer/krylov.h>

namespace gossamer {

namespace ops {

Tensor distributed_dot(const Tensor& u, const Tensor& v, std::string_view group);
Tensor distributed_sum(const Tensor& t, std::string_view group);

}  // namespace ops

namespace distributed {

// Σ u v over the rows of all ranks, of each column if they are (n, k): exact until the end, so the same bits for every
// partition; all ranks have the result, and its gradients are the sums of theirs. group: "" is this process alone.
Tensor dot(const Tensor& u, const Tensor& v, std::string_view group = "");
// The sum of t, of one shape everywhere, over the ranks.
Tensor sum(const Tensor& t, std::string_view group = "");

// Own rows and own columns of A, of which each rank makes a preconditioner: linalg::jacobi(own_block(A)), whose bits do
// not depend on the partition, block Jacobi by linalg::preconditioner(factorize(own_block(A))), linalg::amg(…).
SparseMatrix own_block(const DistributedMatrix& A);

}  // namespace distributed

namespace linalg {

// As for a SparseMatrix; b, x0 and x are this rank's rows. The bits do not depend on the partition, unless M does.
KrylovResult cg(const DistributedMatrix& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult minres(const DistributedMatrix& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult gmres(const DistributedMatrix& A, const Tensor& b, const KrylovOptions& options = {});
KrylovResult bicgstab(const DistributedMatrix& A, const Tensor& b, const KrylovOptions& options = {});

// M of each rank's own block (A⁻¹ of it, if none is given) and a coarse matrix of at most so many rows that all ranks
// have, for symmetric positive definite A and M: iterations do not grow with the number of ranks.
PreconditionerPtr two_level(const DistributedMatrix& A, PreconditionerPtr M = nullptr, int64_t coarse_size = 16384);

}  // namespace linalg

}  // namespace gossamer
