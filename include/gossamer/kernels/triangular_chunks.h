// SPDX-License-Identifier: BSD-3-Clause
// L x = b for one vector on several threads, rows in their own order: for graphs, whose rows seldom need their
// neighbours.
//
// Threads take chunks of rows one after the other and tell each other how far they are. A row waits for the rows it
// needs of chunks that are still being worked on, which lie shortly before it and are few:
//
//   thread 1   [ chunk 0 ········ ][ chunk 2 ········ ]
//   thread 2   [ chunk 1 ········ ][ chunk 3 ········ ]     row 300 waits for row 200, if it needs it
//
// Levels would serve, too, but there are hundreds of them in a graph, and their rows lie all over the memory. A thread
// waits only for chunks that were taken before its own, by threads that run: it works, one chunk after the other, even
// if all of them are taken by one thread. Each row is summed as in triangular.h: the same bits.
#pragma once
#include <thread>
#include <vector>

#include <gossamer/kernels/triangular_rows.h>

namespace gossamer::kernels {

template <bool upper, class T, class I>
class TriangularChunks {
 public:
  static constexpr int64_t chunk = 256;  // rows

  explicit TriangularChunks(const TriangularSolve<T, I>& solve)
      : solve_(solve), n_(solve.L.rows), done_((n_ + chunk - 1) / chunk) {}

  template <class E>
  void run(const E& exec, int64_t threads) {
    exec.parallel_for(threads, [&](int64_t) {
      int64_t finished = 0;  // all chunks before this one are known to be done
      for (size_t c; (c = next_++) < done_.size();) work(static_cast<int64_t>(c), finished);
    });
  }

 private:
  // The rows of a chunk that are done, alone on its line of the cache: threads read it while others write the next one.
  struct alignas(64) Progress {
    std::atomic<int64_t> rows = 0;
  };

  // Rows are counted in the order of the solve: from the last one, if the triangle is the upper one.
  int64_t row(int64_t k) const { return upper ? n_ - 1 - k : k; }

  void work(int64_t c, int64_t& finished) {
    const int64_t begin = c * chunk, end = std::min(begin + chunk, n_);
    T last = 0;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t i = row(k);
      wait_for_needs_of(i, begin, finished);
      if (!solve_element<upper, false>(solve_.L, i, 0, solve_.triangle.unit_diagonal, solve_.b + i * solve_.ldb,
                                       solve_.x, 1, last)) [[unlikely]]
        solve_.report(i);
      done_[c].rows.store(k + 1 - begin, std::memory_order_release);
    }
  }

  // Entries are sorted, so those that may not be there yet stand beside the diagonal, and are looked at from there.
  void wait_for_needs_of(int64_t i, int64_t begin, int64_t& finished) {
    const RowWalk<upper, I> walk(solve_.L, i);
    for (int64_t p = walk.stop - walk.step; p != walk.first - walk.step; p -= walk.step) {
      const int64_t j = solve_.L.indices[p];
      if (!walk.before(j, i)) continue;
      const int64_t k = row(j);
      if (k >= begin) continue;
      if (k < finished * chunk) return;
      while (done_[k / chunk].rows.load(std::memory_order_acquire) <= k % chunk) std::this_thread::yield();
      while (finished < begin / chunk && done_[finished].rows.load(std::memory_order_acquire) == chunk) ++finished;
    }
  }

  const TriangularSolve<T, I>& solve_;
  int64_t n_;
  std::vector<Progress> done_;
  std::atomic<size_t> next_ = 0;
};

// Whether rows seldom need one of the rows shortly before them, by a look at some of them.
template <bool upper, class I>
bool seldom_needs_neighbours(const PatternView<I>& L) {
  constexpr int64_t samples = 256, near = 2 * 256;
  constexpr int64_t stride = 1000003;  // a prime: rows 2^k apart are alike in many generated graphs
  int64_t waits = 0;
  for (int64_t s = 0; s < samples; ++s) {
    const RowWalk<upper, I> walk(L, s * stride % L.rows);
    bool needs = false;
    for (int64_t p = walk.first; p != walk.stop; p += walk.step) {
      const int64_t distance = walk.step * (walk.i - L.indices[p]);
      needs = needs || (distance > 0 && distance <= near);
    }
    waits += needs;
  }
  return 8 * waits <= samples;
}

}  // namespace gossamer::kernels
