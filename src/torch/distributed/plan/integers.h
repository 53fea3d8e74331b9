// SPDX-License-Identifier: BSD-3-Clause
// Integers of a plan: lists of them as tensors, their order by counting sorts, rows that need no halo.
#pragma once
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/csr.h"
#include "distributed/group.h"

namespace gossamer::distributed {

// The places of `keys`, none negative, in ascending order; equal ones stay as they are. A counting sort for each digit
// that the largest key has: O(n) memory and time, whatever the keys are.
inline std::vector<int64_t> order_of(const std::vector<int64_t>& keys) {
  constexpr int bits = 11;
  std::vector<int64_t> order(keys.size()), next(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  if (std::is_sorted(keys.begin(), keys.end())) return order;
  const auto largest = static_cast<uint64_t>(*std::max_element(keys.begin(), keys.end()));
  for (int shift = 0; shift < static_cast<int>(std::bit_width(largest)); shift += bits) {
    const auto digit = [&](int64_t place) { return (keys[place] >> shift) & ((1 << bits) - 1); };
    std::vector<int64_t> at((1 << bits) + 1);
    for (const int64_t place : order) ++at[digit(place) + 1];
    std::partial_sum(at.begin(), at.end(), at.begin());
    for (const int64_t place : order) next[at[digit(place)]++] = place;
    order.swap(next);
  }
  return order;
}

// Where the parts of a list begin, from how many each of them has; and its length, at the end.
inline std::vector<int64_t> starts_of(at::IntArrayRef counts) {
  std::vector<int64_t> starts(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), starts.begin() + 1);
  return starts;
}

inline Tensor integers(const std::vector<int64_t>& numbers) {
  Tensor t = at::empty({static_cast<int64_t>(numbers.size())}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), t.mutable_data_ptr<int64_t>());
  return t;
}

inline std::vector<int64_t> numbers(const Tensor& integers) {
  const Tensor t = integers.to(at::kLong).contiguous();
  return {t.const_data_ptr<int64_t>(), t.const_data_ptr<int64_t>() + t.numel()};
}

// How many this rank will get from each, from how many it sends to each; or the other way.
inline std::vector<int64_t> counts_of_others(const Group& group, const std::vector<int64_t>& mine) {
  const std::vector<int64_t> one(group.size(), 1);
  return numbers(group.all_to_all(integers(mine), one, one));
}

// Rows whose columns are all own ones, as ranges. Short ranges are left to those who read the halo, too.
template <class I>
Tensor interior_rows(const Tensor& indptr, const Tensor& indices, int64_t owned) {
  std::vector<int64_t> ranges;
  const I *start = ptr<I>(indptr), *column = ptr<I>(indices);
  for (int64_t i = 0; i + 1 < indptr.size(0); ++i) {
    const bool inside = std::all_of(column + start[i], column + start[i + 1], [=](I j) { return j < owned; });
    if (!inside) continue;
    if (!ranges.empty() && ranges.back() == i)
      ++ranges.back();
    else
      ranges.insert(ranges.end(), {i, i + 1});
  }
  constexpr int64_t worth_a_range = 32;
  std::vector<int64_t> long_ones;
  for (size_t k = 0; k < ranges.size(); k += 2)
    if (ranges[k + 1] - ranges[k] >= worth_a_range) long_ones.insert(long_ones.end(), {ranges[k], ranges[k + 1]});
  return integers(long_ones);
}

inline std::vector<Tensor> on_device_of(const Tensor& t, std::vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) tensor = tensor.to(t.device());
  return tensors;
}

}  // namespace gossamer::distributed
