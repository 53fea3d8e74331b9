// SPDX-License-Identifier: BSD-3-Clause
// Exact sums (kernels/exact_sum.h) of the processes of a group, added up and rounded: one all-reduce of integers,
// however many sums there are, and the same bits on every rank and for every partition.
#pragma once
#include <gossamer/kernels/exact_sum.h>

#include <vector>

#include "distributed/group.h"

namespace gossamer::distributed {

// The sums of this rank, carries done, of which all ranks have equally many. A collective.
std::vector<double> total(const Group& group, const std::vector<kernels::ExactSum>& sums);

}  // namespace gossamer::distributed
