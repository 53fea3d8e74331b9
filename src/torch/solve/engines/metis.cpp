// SPDX-License-Identifier: BSD-3-Clause
// METIS (Debian: libmetis5; Apache-2.0): nested dissection and partitions of graphs. Loaded where it is installed; no
// header of it is needed. Its integers have 32 or 64 bits, as it was built, and those of 32 bits are taken.
#include "solve/engines/metis.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>

#include "solve/engines/ordering.h"
#include "solve/engines/shared_library.h"

namespace gossamer {
namespace {

constexpr int options_count = 40;  // METIS_NOPTIONS

struct Library {
  int (*set_defaults)(void* options);
  int (*node_nd)(int32_t* n, int32_t* ptr, int32_t* neighbours, int32_t* weights, int32_t* options, int32_t* row,
                 int32_t* rank);
  using Partition = int(int32_t* n, int32_t* constraints, int32_t* ptr, int32_t* neighbours, int32_t* weights,
                        int32_t* sizes, int32_t* edge_weights, int32_t* parts, float* shares, float* imbalance,
                        int32_t* options, int32_t* cut, int32_t* part);
  Partition *recursive, *k_way;
  bool found = false;

  Library() {
    SharedLibrary library({"libmetis.so.5", "libmetis.so"}, own_symbols_first);
    library.find("METIS_SetDefaultOptions", set_defaults).find("METIS_NodeND", node_nd);
    library.find("METIS_PartGraphRecursive", recursive).find("METIS_PartGraphKway", k_way);
    found = library && takes_32_bits();
  }
  // The defaults are -1 for each option, so many integers: a library of 64 bits sets twice the bytes.
  bool takes_32_bits() const {
    std::array<int32_t, 3 * options_count> options{};
    set_defaults(options.data());
    return options[options_count - 1] == -1 && options[options_count] == 0;
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

constexpr int ok = 1;

std::array<int32_t, options_count> fixed_options() {
  std::array<int32_t, options_count> options;
  library().set_defaults(options.data());
  constexpr int seed = 8;  // METIS_OPTION_SEED
  options[seed] = 1;
  return options;
}

std::mutex one_at_a_time;  // its random numbers are the process's

}  // namespace

bool has_metis() {
  return library().found;
}

std::vector<int32_t> metis_parts(std::vector<int32_t> ptr, std::vector<int32_t> neighbours,
                                 std::vector<int32_t> weights, int32_t parts) {
  if (!library().found) return {};
  auto options = fixed_options();
  const std::lock_guard lock(one_at_a_time);
  auto n = static_cast<int32_t>(weights.size());
  int32_t constraints = 1, cut = 0;
  std::vector<int32_t> part(weights.size());
  const auto partition = parts <= 8 ? library().recursive : library().k_way;  // as METIS's own manual advises
  const int result = partition(&n, &constraints, ptr.data(), neighbours.data(), weights.data(), nullptr, nullptr,
                               &parts, nullptr, nullptr, options.data(), &cut, part.data());
  return result == ok ? part : std::vector<int32_t>();
}

std::vector<int> metis_order(const SquareColumns& A) {
  if (!library().found) return {};
  std::vector<int32_t> ptr = {0}, neighbours, row(A.n), rank(A.n);
  for (int j = 0; j < A.n; ++j) {
    std::copy_if(A.rows + A.ptr[j], A.rows + A.ptr[j + 1], std::back_inserter(neighbours),
                 [j](int i) { return i != j; });
    ptr.push_back(static_cast<int32_t>(neighbours.size()));
  }
  auto options = fixed_options();
  const std::lock_guard lock(one_at_a_time);
  int32_t n = A.n;
  const int result =
      library().node_nd(&n, ptr.data(), neighbours.data(), nullptr, options.data(), row.data(), rank.data());
  return result == ok ? std::vector<int>(row.begin(), row.end()) : std::vector<int>();
}

}  // namespace gossamer
