// SPDX-License-Identifier: BSD-3-Clause
// Where a kernel runs. A kernel takes its executor as the first argument and has no pool of its own.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>

#include <gossamer/kernels/csr.h>
#include <gossamer/kernels/half.h>

namespace gossamer {

// A host executor runs f(k) for k = 0 … n-1, in any order and possibly at once, and says on how many threads.
template <class E>
concept Host = requires(const E& exec, void (*f)(int64_t)) {
  { exec.threads() } -> std::convertible_to<int64_t>;
  exec.parallel_for(int64_t{}, f);
};

// The reference: everything in order, on the caller's thread.
struct Serial {
  int64_t threads() const { return 1; }
  template <class F>
  void parallel_for(int64_t n, const F& f) const {
    for (int64_t k = 0; k < n; ++k) f(k);
  }
};

// Any host executor behind one type, so that a kernel is compiled once for all of them (src/cpu): a pointer to it and
// two to functions, cheap to copy, and one indirect call a part. It refers to the executor, which must outlive it.
class Pool {
 public:
  template <class E>
    requires(!std::same_as<E, Pool>) && Host<E>
  Pool(const E& exec)
      : exec_(&exec),
        threads_([](const void* e) -> int64_t { return static_cast<const E*>(e)->threads(); }),
        run_([](const void* e, int64_t n, const Body& body) { static_cast<const E*>(e)->parallel_for(n, body); }) {}

  int64_t threads() const { return threads_(exec_); }
  template <class F>
  void parallel_for(int64_t n, const F& f) const {
    run_(exec_, n, Body{&f, [](const void* body, int64_t k) { (*static_cast<const F*>(body))(k); }});
  }

 private:
  struct Body {
    const void* f;
    void (*call)(const void*, int64_t);
    void operator()(int64_t k) const { call(f, k); }
  };
  const void* exec_;
  int64_t (*threads_)(const void*);
  void (*run_)(const void*, int64_t, const Body&);
};

// A CUDA stream (cudaStream_t, without CUDA's headers). Kernels that take it are declared beside their host twin,
// weakly: src/cuda defines them, and a build without CUDA has none. cuda_linked is null there; ask it before calling
// one.
struct Cuda {
  void* stream = nullptr;
};
[[gnu::weak]] void cuda_linked();

// The first row whose predecessors hold at least `work`, a row costing its entries plus one: empty rows are not free.
template <class I>
GOSSAMER_HD int64_t row_at(const PatternView<I>& A, int64_t work) {
  int64_t low = 0, high = A.rows;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (A.indptr[middle] + middle < work)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct RowRange {
  int64_t begin, end;
};

// The rows of part k, if the rows are cut into `parts` of equal work.
template <class I>
GOSSAMER_HD RowRange row_range(const PatternView<I>& A, int64_t k, int64_t parts) {
  const int64_t work = A.nnz + A.rows;
  return {row_at(A, work * k / parts), k + 1 == parts ? A.rows : row_at(A, work * (k + 1) / parts)};
}

// Runs f(begin, end) over row ranges of equal work, one a thread: split by nonzeros, not by rows, because a few rows of
// a power-law graph hold most of it. `cost` is the work of one entry; small matrices stay on the caller's thread. Rows
// are never split, so a row is always summed by one thread in one order, whatever their number.
template <Host E, class I, class F>
void for_each_row_range(const E& exec, const PatternView<I>& A, int64_t cost, const F& f) {
  constexpr int64_t worth_a_thread = 24576;
  const int64_t work = A.nnz + A.rows;
  const int64_t parts = std::clamp<int64_t>(work * cost / worth_a_thread, 1, std::max<int64_t>(exec.threads(), 1));
  if (parts == 1) return f(int64_t{0}, A.rows);
  exec.parallel_for(parts, [&](int64_t k) {
    const RowRange rows = row_range(A, k, parts);
    f(rows.begin, rows.end);
  });
}

// Into how many row ranges a sum over all entries is cut. The number depends on the pattern alone, so that adding the
// sums of the ranges in order gives the same bits whatever the number of threads.
template <class I>
int64_t fixed_parts(const PatternView<I>& A) {
  constexpr int64_t work = 16384, most = 64;
  return std::clamp<int64_t>((A.nnz + A.rows) / work, 1, most);
}

// Runs f(k, begin, end) for each of `parts` row ranges.
template <Host E, class I, class F>
void for_each_part(const E& exec, const PatternView<I>& A, int64_t parts, const F& f) {
  const auto part = [&](int64_t k) {
    const RowRange rows = row_range(A, k, parts);
    f(k, rows.begin, rows.end);
  };
  if (parts == 1 || exec.threads() == 1)
    for (int64_t k = 0; k < parts; ++k) part(k);
  else
    exec.parallel_for(parts, part);
}

}  // namespace gossamer
