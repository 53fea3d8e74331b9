// SPDX-License-Identifier: BSD-3-Clause
// Planted overruns. Built with AddressSanitizer and run with the name of a bug, it must be reported; `none` must not.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "spmm.cuh"

using gossamer::Cuda;
using gossamer::device::launch;

__global__ static void read_past_the_end(const double* v, double* out, unsigned n) {
  out[threadIdx.x] = v[threadIdx.x + n];
}
__global__ static void write_before_the_start(double* out) {
  out[static_cast<int>(threadIdx.x) - 1] = 1;
}
__global__ static void shared_past_the_end(double* out, unsigned n) {
  GOSSAMER_SHARED(double, held, 32);
  held[threadIdx.x + n] = 1;
  __syncthreads();
  out[threadIdx.x] = held[threadIdx.x];
}

// A real kernel, lied to about the rows of X: it has one too few.
static void spmm_past_x(int64_t rows_of_x) {
  const std::vector<int> indptr{0, 1, 2}, indices{0, 1};
  const std::vector<double> values{1, 1}, X(rows_of_x * 40, 1);
  std::vector<double> Y(80);
  const gossamer::Csr<double, int> A{{2, 2, 2, indptr.data(), indices.data()}, values.data(), 1, nullptr};
  launch(Cuda{}, gossamer::kernels::spmm_tiles<32, 2, double, int>, 1, 64, A, X.data(), 40, 40, Y.data(), nullptr);
}

int main(int, char** argv) {
  std::vector<double> in(32), out(32);
  const std::map<std::string, std::function<void()>> bugs{
      {"read", [&] { launch(Cuda{}, read_past_the_end, 1, 32, in.data(), out.data(), 1); }},
      {"write", [&] { launch(Cuda{}, write_before_the_start, 1, 32, out.data()); }},
      {"shared", [&] { launch(Cuda{}, shared_past_the_end, 1, 32, out.data(), 1); }},
      {"spmm", [] { spmm_past_x(1); }},
      {"none",
       [&] {
         launch(Cuda{}, read_past_the_end, 1, 32, in.data(), out.data(), 0);
         launch(Cuda{}, shared_past_the_end, 1, 32, out.data(), 0);
         spmm_past_x(2);
         std::puts("no overrun");
       }},
  };
  bugs.at(argv[1])();
}
