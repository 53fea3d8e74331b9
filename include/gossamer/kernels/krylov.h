// SPDX-License-Identifier: BSD-3-Clause
// Passes over blocks of columns, of which Krylov methods consist beside their products. A block is (n, k), contiguous;
// each column has scalars of its own. A pass is a short list of statements of two kinds,
//
//   out[i, c] = Σ_j scale[j][c] v[j][i, c]      at most four terms; out may be one of the v
//   dots[c]   = Σ_i v[0][i, c] v[1][i, c]
//
// done in order for a piece of the rows that fits into the first cache, then for the next piece: however many
// statements share a block, it is read from memory once. O(n k) for each statement.
//
// Rows are cut into parts by n and k alone, and the sums of the parts are added in order: the same bits for every
// number of threads. Exact dots (dot_exact.h), which may be asked for, have the same bits for every partition of the
// rows over processes, too.
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include <gossamer/kernels/dot_exact.h>
#include <gossamer/kernels/exec.h>
#include <gossamer/kernels/simd.h>

namespace gossamer::kernels {

constexpr int most_terms = 4;

template <class T>
struct Statement {
  T* out = nullptr;
  int terms = 0;
  const T* v[most_terms] = {};
  const double* scale[most_terms] = {};  // (k,) each
  double* dots = nullptr;                // (k,), of v[0] and v[1]; null: a sum
};

// The definition as loops. Tests compare the tuned pass with it.
namespace plain {
template <class T>
void pass(int64_t n, int64_t k, const std::vector<Statement<T>>& statements) {
  for (const auto& s : statements) {
    if (s.dots) std::fill(s.dots, s.dots + k, 0.0);
    for (int64_t e = 0; e < n * k; ++e) {
      T sum = 0;
      for (int j = 0; j < s.terms; ++j) sum += static_cast<T>(s.scale[j][e % k]) * s.v[j][e];
      if (s.dots)
        s.dots[e % k] += static_cast<double>(s.v[0][e]) * s.v[1][e];
      else
        s.out[e] = sum;
    }
  }
}
}  // namespace plain

// `count` elements from a row's beginning on, a multiple of `tile`, which repeats the scales of a row.
template <int terms, class T>
[[gnu::always_inline]] inline void combine(int64_t count, int64_t tile, const T* const* v, const T* const* scale,
                                           T* out) {
  for (int64_t e = 0; e < count; e += tile) {
    const int64_t width = std::min(tile, count - e);
    for (int64_t l = 0; l < width; ++l) {
      T sum = scale[0][l] * v[0][e + l];
      for (int j = 1; j < terms; ++j) sum += scale[j][l] * v[j][e + l];
      out[e + l] = sum;
    }
  }
}

// sums[l] += Σ over tiles of u v: as many independent sums as a tile has elements.
template <class T>
[[gnu::always_inline]] inline void add_dots(int64_t count, int64_t tile, const T* u, const T* v, T* sums) {
  for (int64_t e = 0; e < count; e += tile) {
    const int64_t width = std::min(tile, count - e);
    for (int64_t l = 0; l < width; ++l) sums[l] += u[e + l] * v[e + l];
  }
}

// One pass, ready to run: the scales repeated to the length of a tile, in T; dots as numbers of type S, which is double
// or ExactSum.
template <class T, class S>
class Pass {
 public:
  Pass(int64_t n, int64_t k, const std::vector<Statement<T>>& statements)
      : k_(k), size_(n * k), tile_(k * std::max<int64_t>(1, 64 / k)), statements_(statements) {
    for (const auto& s : statements_) {
      dots_ += s.dots != nullptr;
      for (int j = 0; j < s.terms; ++j) {
        const size_t at = scales_.size();
        scales_.resize(at + tile_);
        for (int64_t l = 0; l < tile_; ++l) scales_[at + l] = static_cast<T>(s.scale[j][l % k]);
      }
    }
    piece_ = tile_ * std::max<int64_t>(1, 2048 / tile_);
    const int64_t pieces = (size_ + piece_ - 1) / piece_;
    parts_ = std::clamp<int64_t>(pieces / 8, 1, 64);
    per_part_ = (pieces + parts_ - 1) / parts_;
    sums_.resize(parts_ * dots_ * k);
  }

  int64_t parts() const { return parts_; }

  void run(int64_t part) {
    const int64_t begin = part * per_part_ * piece_, end = std::min(size_, begin + per_part_ * piece_);
    std::vector<T> scratch(tile_);
    std::vector<int> tops(dots_, nothing_believed);
    S* sums = sums_.data() + part * dots_ * k_;
    simd([&]<int Bytes> {
      for (int64_t at = begin; at < end; at += piece_)
        piece<Bytes / 8>(at, std::min(piece_, end - at), scratch.data(), tops.data(), sums);
    });
  }

  // All dots, one statement after the other, (k,) each.
  std::vector<S> dots() const {
    std::vector<S> results(dots_ * k_);
    for (size_t e = 0; e < sums_.size(); ++e)
      if constexpr (std::is_same_v<S, double>)
        results[e % results.size()] += sums_[e];
      else
        results[e % results.size()].add(sums_[e]);
    return results;
  }

 private:
  template <int lanes>
  [[gnu::always_inline]] inline void piece(int64_t at, int64_t count, T* scratch, int* tops, S* sums) const {
    const T* scale = scales_.data();
    for (const auto& s : statements_) {
      if (!s.dots) {
        const T *v[most_terms], *scales[most_terms];
        for (int j = 0; j < s.terms; ++j, scale += tile_) v[j] = s.v[j] + at, scales[j] = scale;
        if (s.terms == 1) combine<1>(count, tile_, v, scales, s.out + at);
        if (s.terms == 2) combine<2>(count, tile_, v, scales, s.out + at);
        if (s.terms == 3) combine<3>(count, tile_, v, scales, s.out + at);
        if (s.terms == 4) combine<4>(count, tile_, v, scales, s.out + at);
        continue;
      }
      if constexpr (std::is_same_v<S, double>) {
        std::fill(scratch, scratch + tile_, T{0});
        add_dots(count, tile_, s.v[0] + at, s.v[1] + at, scratch);
        for (int64_t l = 0; l < tile_; ++l) sums[l % k_] += static_cast<double>(scratch[l]);
      } else {
        add_dots_exactly<lanes>(count / k_, k_, s.v[0] + at, s.v[1] + at, sums, *tops++);
      }
      sums += k_;
    }
  }

  int64_t k_, size_, tile_, piece_, parts_, per_part_, dots_ = 0;
  const std::vector<Statement<T>>& statements_;
  std::vector<T> scales_;
  std::vector<S> sums_;  // (parts, dots, k)
};

template <class S, Host E, class T>
std::vector<S> dots_of_pass(const E& exec, int64_t n, int64_t k, const std::vector<Statement<T>>& statements) {
  Pass<T, S> all(n, k, statements);
  if (all.parts() == 1 || exec.threads() == 1)
    for (int64_t part = 0; part < all.parts(); ++part) all.run(part);
  else
    exec.parallel_for(all.parts(), [&](int64_t part) { all.run(part); });
  return all.dots();
}

template <Host E, class T>
void pass(const E& exec, int64_t n, int64_t k, const std::vector<Statement<T>>& statements) {
  if (k == 0) return;
  const std::vector<double> dots = dots_of_pass<double>(exec, n, k, statements);
  const double* next = dots.data();
  for (const auto& s : statements)
    if (s.dots) std::copy(next, next + k, s.dots), next += k;
}

// The same with exact sums in place of the dots, one statement after the other, (k,) each, carries done: they may be
// added to those of other processes before they are rounded.
template <Host E, class T>
std::vector<ExactSum> pass_exact(const E& exec, int64_t n, int64_t k, const std::vector<Statement<T>>& statements) {
  if (k == 0) return {};
  std::vector<ExactSum> sums = dots_of_pass<ExactSum>(exec, n, k, statements);
  for (ExactSum& sum : sums) sum.carry();
  return sums;
}

// Under Pool, compiled once: src/cpu/krylov.cpp.
#define GOSSAMER_KRYLOV(T, ...)                                                                    \
  __VA_ARGS__ template void pass(const Pool&, int64_t, int64_t, const std::vector<Statement<T>>&); \
  __VA_ARGS__ template std::vector<ExactSum> pass_exact(const Pool&, int64_t, int64_t,             \
                                                        const std::vector<Statement<T>>&);
#ifdef GOSSAMER_COMPILED
GOSSAMER_KRYLOV(float, extern)
GOSSAMER_KRYLOV(double, extern)
#endif

}  // namespace gossamer::kernels
