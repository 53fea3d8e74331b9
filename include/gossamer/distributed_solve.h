// SPDX-License-Identifier: BSD-3-Clause
// Sums over the rows of all processes, for matrices of distributed.h.
#pragma once
#include <string>
#include <string_view>

#include <gossamer/distributed.h>

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

}  // namespace distributed

}  // namespace gossamer
