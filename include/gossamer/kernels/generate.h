// SPDX-License-Identifier: BSD-3-Clause
// Random graphs with communities, by a seed: one thread, so the same for every number of threads.
//
//   block_model   each pair of nodes of blocks a, b is an edge with probability p_in if a = b, else p_out
//   power_law     endpoints drawn with weight (i + 1)^(−1/(γ − 1)), so that degrees follow a power law with exponent γ
//                 (Chung and Lu); with probability `homophily` both endpoints are of one class (Karrer and Newman)
//
// Edges are undirected, and handed over once, as emit(i, j).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

namespace gossamer {

// std::mt19937_64 is the same on every machine; the distributions of the standard library are not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // in [0, 1)
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }

  // Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (int64_t k = static_cast<int64_t>(items.size()); k > 1; --k)
      std::swap(items[static_cast<size_t>(k - 1)], items[static_cast<size_t>(below(k))]);
  }

 private:
  std::mt19937_64 engine_;
};

// take(k) for each k of 0 … count − 1 with probability p, in O(count · p): the gaps are geometric.
template <class Take>
void for_each_chosen(Random& random, double p, int64_t count, const Take& take) {
  if (p <= 0) return;
  const double scale = p < 1 ? 1 / std::log1p(-p) : 0;
  for (int64_t k = 0; k < count; ++k) {
    const double gap = std::floor(std::log(1 - random.uniform()) * scale);
    if (gap >= static_cast<double>(count - k)) return;
    k += static_cast<int64_t>(gap);
    take(k);
  }
}

// Nodes are numbered block after block.
template <class Emit>
void block_model(Random& random, const std::vector<int64_t>& sizes, double p_in, double p_out, const Emit& emit) {
  int64_t a_begin = 0;
  for (size_t a = 0; a < sizes.size(); a_begin += sizes[a++]) {
    int64_t row = 1, row_begin = 0;  // pairs i > j of a block, row i beginning at i (i − 1) / 2
    for_each_chosen(random, p_in, sizes[a] * (sizes[a] - 1) / 2, [&](int64_t k) {
      while (k >= row_begin + row) row_begin += row++;
      emit(a_begin + row, a_begin + k - row_begin);
    });
    int64_t b_begin = 0;
    for (size_t b = 0; b < a; b_begin += sizes[b++])
      for_each_chosen(random, p_out, sizes[a] * sizes[b],
                      [&](int64_t k) { emit(a_begin + k / sizes[b], b_begin + k % sizes[b]); });
  }
}

// `edges` draws; a draw that gives a loop is left out, and parallel edges are the caller's to merge. exponent > 2.
// Node i is of class i % classes, and node 0 has the largest degree.
template <class Emit>
void power_law(Random& random, int64_t nodes, int64_t edges, double exponent, int64_t classes, double homophily,
               const Emit& emit) {
  const double s = 1 - 1 / (exponent - 1), last = std::pow(static_cast<double>(nodes + 1), s) - 1;
  const auto draw = [&] {  // the inverse of the distribution function of x^(s − 1) on [1, nodes + 1)
    const double x = std::pow(1 + random.uniform() * last, 1 / s);
    return std::min(static_cast<int64_t>(x) - 1, nodes - 1);
  };
  for (int64_t k = 0; k < edges; ++k) {
    const int64_t i = draw();
    int64_t j = draw();
    if (random.uniform() < homophily) j += i % classes - j % classes;  // the node of i's class beside it
    if (j != i && j < nodes) emit(i, j);
  }
}

}  // namespace gossamer
