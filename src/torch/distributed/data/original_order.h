// SPDX-License-Identifier: BSD-3-Clause
// Rows by their original numbers, whoever owns them.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace gossamer::distributed {

using at::Tensor;

// Rows that many processes hold, in the order of their keys: t[k] is number keys[k] of `total`, and every number from 0
// to total - 1 is somebody's. This process gets numbers total · rank / size … total · (rank + 1) / size - 1. `back`:
// the other way, from that range to the keys of each process.
Tensor in_order_of_keys(const Tensor& t, const Tensor& keys, int64_t total, const std::string& group, bool back);

// Which entry of the whole matrix, in the order of row_keys, each own entry is.
Tensor entry_keys(const Tensor& indptr, const Tensor& row_keys, int64_t rows, const std::string& group);

}  // namespace gossamer::distributed
