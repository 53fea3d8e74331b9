// SPDX-License-Identifier: BSD-3-Clause
// Stands in for libgossamer in check_standin.py: a library that knows the CUDA kernels only as weak symbols.
#include <gossamer/kernels/spmm.h>

extern "C" bool probe_linked() {
  return gossamer::cuda_linked != nullptr;
}

// Y = A X, one head, all pointers on the device.
extern "C" void probe_spmm(int64_t rows, int64_t cols, int64_t nnz, const int32_t* indptr, const int32_t* indices,
                           const double* values, const double* X, int64_t width, double* Y) {
  const gossamer::Csr<double, int32_t> A{{rows, cols, nnz, indptr, indices}, values, 1, nullptr};
  gossamer::kernels::spmm(gossamer::Cuda{}, A, X, width, width, Y, nullptr);
}
