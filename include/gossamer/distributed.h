// SPDX-License-Identifier: BSD-3-Clause
// Matrices whose rows are on many processes, over torch.distributed.
//
// The contract: every rank calls the same functions in the same order; what is differentiated is the sum over the ranks
// of what each of them calls backward on.
//
//   // The group is the caller's: registered in torch under a name (c10d::register_process_group).
//   auto A = gossamer::distributed::scatter(gossamer::poisson({100, 100}), "workers");
//   auto x = torch::ones({A.local_shape()[1]}).requires_grad_();       // this rank's rows of x
//   auto y = A.matmul(x);                                              // this rank's rows of A x
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

namespace ops {

// A plan, as the ops below take it: {indptr, indices, send_rows, interior, runs} of this rank's block, and with the
// transpose the same of Aᵀ's block and {out, into, quarters}. counts: {own rows, own columns}, then one number a rank
// of each: rows of X sent, received, and with the transpose both of Aᵀ and of the entries that are routed to it, then
// {entries, columns} of all ranks. src/torch/distributed/exchange.h says what they mean.

// From this rank's rows, with columns as all ranks number them: the plan without the transpose, and the counts.
// Rank r owns the columns col_offsets[r] … col_offsets[r + 1] - 1. All ranks call it.
std::tuple<std::vector<Tensor>, std::vector<int64_t>> distributed_plan(const Tensor& indptr, const Tensor& columns,
                                                                       const Tensor& row_offsets,
                                                                       const Tensor& col_offsets,
                                                                       std::string_view group);
// The same with the transpose. row_keys: one number for each own row; a column of A is added up in their order. All
// ranks call it.
std::tuple<std::vector<Tensor>, std::vector<int64_t>> distributed_transpose(TensorList plan, at::IntArrayRef counts,
                                                                            const Tensor& row_keys,
                                                                            std::string_view group);
// The plan of Aᵀ, whose transpose is A, from a plan with the transpose. No other rank is asked.
std::tuple<std::vector<Tensor>, std::vector<int64_t>> distributed_swap(TensorList plan, at::IntArrayRef counts);

// Rows of x from their owners: row index[k] of x is sent, send[r] of them to rank r; what comes, in the order of ranks.
Tensor halo(const Tensor& x, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv, std::string_view group);
// Its adjoint: rows go back to their owners and are added there, in the order of ranks, to zeros of so many rows.
Tensor halo_sum(const Tensor& g, const Tensor& index, at::IntArrayRef send, at::IntArrayRef recv, int64_t rows,
                std::string_view group);
// Values of A's entries to where Aᵀ has them, or, with `back`, the other way.
Tensor route(const Tensor& values, const Tensor& out, const Tensor& into, at::IntArrayRef send, at::IntArrayRef recv,
             bool back, std::string_view group);

// Y = A X, or Aᵀ X if t: own rows of X in, own rows of Y out. `halo`: that of X, if it is at hand; it is fetched else.
// keep_halo: the halo is kept for the backward.
Tensor spmm_rows(TensorList plan, at::IntArrayRef counts, const Tensor& values, const Tensor& X, bool t,
                 const std::optional<Tensor>& halo, bool keep_halo, std::string_view group);
// (U Vᵀ) on this rank's entries, from own rows of U and V.
Tensor sddmm_rows(TensorList plan, at::IntArrayRef counts, const Tensor& U, const Tensor& V,
                  const std::optional<Tensor>& halo, bool keep_halo, std::string_view group);

}  // namespace ops

}  // namespace gossamer
