// SPDX-License-Identifier: BSD-3-Clause
// A program that uses the kernels alone: no torch, no allocation but its own.
#include <gossamer/kernels/spmm.h>
#include <gossamer/version.h>

#include <cstdio>

int main() {
  const int indptr[] = {0, 2, 3}, indices[] = {0, 1, 1};
  const double values[] = {1, 2, 3}, x[] = {10, 100};
  double y[2];
  const gossamer::Csr<double, int> A{{2, 2, 3, indptr, indices}, values};
  gossamer::kernels::spmm(gossamer::Serial{}, A, x, 1, 1, y);
  std::printf("%s: %g %g\n", GOSSAMER_VERSION, y[0], y[1]);
  return y[0] == 210 && y[1] == 300 ? 0 : 1;
}
