// SPDX-License-Identifier: BSD-3-Clause
// The ops whose cost is counted, by name: each makes its operands in the emulated device's memory and calls the public
// launch function of its kernels, nothing below it, so that kernels may change as they like.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gossamer/kernels/csr.h>
#include "counter.h"

namespace cost {

// A pattern on the host, with int32 indices.
struct Pattern {
  int64_t rows = 0, cols = 0;
  std::vector<int32_t> indptr, indices;

  int64_t nnz() const { return static_cast<int64_t>(indices.size()); }
  gossamer::PatternView<int32_t> view() const { return {rows, cols, nnz(), indptr.data(), indices.data()}; }
};

// The arithmetic of an op by the formula beside it, and, where rows wait for one another, the longest chain of them.
struct Work {
  double flops = 0;
  int64_t chain = 0;
};

struct Shape {
  int64_t width = 1, heads = 1;
};
using Op = std::function<Work(const Pattern&, Shape)>;
using Ops = std::map<std::string, Op>;  // each counts from its first launch to its last

// By files: products.cpp, rows.cpp, attention.cpp. T is float or double.
template <class T>
void add_products(Ops& ops);
template <class T>
void add_rows(Ops& ops);
template <class T>
void add_attention(Ops& ops);

// Arrays on the device.
template <class T>
T* array(int64_t n) {
  return static_cast<T*>(allocate(static_cast<size_t>(n) * sizeof(T)));
}
template <class T>
T* copy(const std::vector<T>& v) {
  T* p = array<T>(static_cast<int64_t>(v.size()));
  std::copy(v.begin(), v.end(), p);
  return p;
}
// Numbers between 1 and 2: no sum or quotient of them surprises.
template <class T>
T* numbers(int64_t n) {
  T* p = array<T>(n);
  for (int64_t k = 0; k < n; ++k) p[k] = T(1) + static_cast<T>(k % 97) / 97;
  return p;
}
inline gossamer::PatternView<int32_t> on_device(const Pattern& A) {
  return {A.rows, A.cols, A.nnz(), copy(A.indptr), copy(A.indices)};
}
template <class T>
gossamer::Csr<T, int32_t> with_values(const gossamer::PatternView<int32_t>& A, int64_t heads = 1) {
  return {A, numbers<T>(A.nnz * heads), heads, nullptr};
}

// Aᵀ, whose values are those of A through perm.
struct Transposed {
  Pattern pattern;
  std::vector<int32_t> perm;
};
Transposed transposed(const Pattern& A);

// Counts what f launches.
template <class F>
void counted(const F& f) {
  start();
  f();
  stop();
}

}  // namespace cost
