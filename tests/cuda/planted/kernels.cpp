// SPDX-License-Identifier: BSD-3-Clause
// Real kernels, of which CMake makes copies with one line changed (see `mutant` in CMakeLists.txt): a barrier, a flag,
// a ticket or an order is missing. Built with ThreadSanitizer and run with a noun, it says what it saw, unless
// ThreadSanitizer does; without a change, all is as it should be.
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include <gossamer/kernels/spmm.h>
#include "matrix.h"
#include "spgemm.cuh"
#include "spmm.cuh"
#include "triangular.cuh"

namespace gossamer::test {
namespace {

using Numbers = std::vector<float>;

// Y = A X, one row in five pieces. Thirds: their sums depend on the order.
std::pair<Numbers, Numbers> product() {
  constexpr int64_t width = 3, cols = 2600;
  std::mt19937 random(1);
  const Matrix<float, int32_t> matrix({2, cols, 33}, cols, 1, false, random);
  Numbers values(matrix.nnz()), X(cols * width), Y = not_numbers<float>(3 * width), wanted = Y;
  for (auto* v : {&values, &X})
    for (float& x : *v) x = static_cast<float>(random() % 1000) / 3;
  Csr<float, int32_t> A = matrix.csr();
  A.values = values.data();
  Numbers partial(kernels::piece_places(A.nnz) * width);
  device::launch_warps(Cuda{}, kernels::spmm_tiles<4, 1, float, int32_t>, device::runs_of(A), A, X.data(), width, width,
                       Y.data(), partial.data());
  device::launch_add_pieces<float, int32_t>(Cuda{}, A, width, width, partial.data(), Y.data(), nullptr);
  kernels::plain::spmm(A, X.data(), width, width, wanted.data());
  return {Y, wanted};
}

// C = A B with rows of C in registers, in shared memory and in scratch; so many columns that some share a place.
std::pair<Numbers, Numbers> sparse_product() {
  std::mt19937 random(2);
  const Matrix<float, int32_t> A({3, 9, 5}, 20, 1, false, random), B(Lengths(20, 70), 900, 1, false, random),
      C({20, 100, 140}, 900, 1, false, random);
  Numbers values = not_numbers<float>(C.nnz()), scratch = values, wanted = values;
  device::launch_warps(Cuda{}, kernels::spgemm_rows<float, int32_t>, 3, A.csr(), B.csr(), C.pattern(), values.data(),
                       scratch.data());
  kernels::plain::spgemm(A.csr(), B.csr(), C.pattern(), wanted.data());
  return {values, wanted};
}

// L x = b, each row needing the one before, in several blocks.
template <int64_t width>
std::pair<Numbers, Numbers> solution() {
  constexpr int64_t n = 12;
  std::vector<int32_t> indptr{0}, indices;
  for (int32_t i = 0; i < n; ++i) {
    if (i > 0) indices.push_back(i - 1);
    indices.push_back(i);
    indptr.push_back(static_cast<int32_t>(indices.size()));
  }
  const Numbers values(indices.size(), 2), b(n * width, 1);
  const Csr<float, int32_t> L{{n, n, 2 * n - 1, indptr.data(), indices.data()}, values.data(), 1, nullptr};
  Numbers x = not_numbers<float>(n * width), wanted = x;
  std::vector<int> ready(n, 0);
  unsigned long long tickets = 0, bad = n;
  const kernels::SolveProgress progress{&tickets, ready.data(), &bad};
  if constexpr (width == 1)
    device::launch_warps(Cuda{}, kernels::solve_vector<float, int32_t>, n, L, Triangle{}, b.data(), 1, x.data(),
                         progress);
  else
    device::launch_warps(Cuda{}, kernels::solve_columns<float, int32_t>, n, L, Triangle{}, b.data(), width, width,
                         x.data(), progress);
  kernels::plain::solve_triangular(L, {}, b.data(), width, width, wanted.data());
  return {x, wanted};
}

using Runs = std::map<std::string, std::function<std::pair<Numbers, Numbers>()>>;
const Runs all_runs{
    {"spmm", product}, {"spgemm", sparse_product}, {"solve_vector", solution<1>}, {"solve_columns", solution<20>}};

const char* verdict(const std::function<std::pair<Numbers, Numbers>()>& run) {
  Numbers first;
  for (const uint64_t seed : {0, 1, 2, 3, 5, 10}) {  // 5 and 10: one block at a time
    schedule(seed);
    const auto [got, wanted] = run();
    for (size_t k = 0; k < got.size(); ++k)
      if (!(std::abs(got[k] - wanted[k]) <= 1e-4f * (1 + std::abs(wanted[k])))) return "wrong numbers";
    if (first.empty()) first = got;
    if (!same_bits(got, first)) return "other bits";
  }
  return "as it should be";
}

}  // namespace
}  // namespace gossamer::test

int main(int, char** argv) {
  using namespace gossamer::test;
  try {
    for (const auto& [noun, run] : all_runs)
      if (argv[1] == noun || argv[1] == std::string("all")) std::puts(verdict(run));
  } catch (const std::exception& error) {
    std::puts(error.what());
  }
}
