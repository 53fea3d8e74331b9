// SPDX-License-Identifier: BSD-3-Clause
// METIS as a partitioner of graphs; as a source of orders it is in ordering.h.
#pragma once
#include <cstdint>
#include <vector>

namespace gossamer {

bool has_metis();  // on this machine, with integers of 32 bits

// For each node the part it goes to, so that parts weigh about the same and few edges are between them. The graph is
// undirected and without loops. The same on every call; empty if the library is not there, or failed.
std::vector<int32_t> metis_parts(std::vector<int32_t> ptr, std::vector<int32_t> neighbours,
                                 std::vector<int32_t> weights, int32_t parts);

}  // namespace gossamer
