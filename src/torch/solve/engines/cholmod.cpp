// SPDX-License-Identifier: BSD-3-Clause
// CHOLMOD (SuiteSparse; LGPL-2.1-or-later, its supernodal part GPL-2.0-or-later): Cholesky by dense blocks. Loaded
// where it is installed; no header of it is needed.
#include <algorithm>
#include <cstring>

#include "solve/engines/cholmod_declarations.h"
#include "solve/engines/engine.h"
#include "solve/engines/shared_library.h"

namespace gossamer {
namespace {
namespace abi = cholmod_abi;

struct Library {
  int (*start)(abi::Parameters*);
  int (*finish)(abi::Parameters*);
  int (*find_version)(int version[3]);
  abi::Factor* (*analyze)(abi::Sparse*, abi::Parameters*);
  abi::Factor* (*copy_factor)(abi::Factor*, abi::Parameters*);
  int (*factorize)(abi::Sparse*, abi::Factor*, abi::Parameters*);
  abi::Dense* (*solve)(int system, abi::Factor*, abi::Dense*, abi::Parameters*);
  int (*free_factor)(abi::Factor**, abi::Parameters*);
  int (*free_dense)(abi::Dense**, abi::Parameters*);
  std::string version;  // empty: not installed, or not one that we know

  Library() {
    SharedLibrary library({"libcholmod.so.5", "libcholmod.so.4", "libcholmod.so.3"}, own_symbols_first);
    const bool complete = static_cast<bool>(library.find("cholmod_start", start)
                                                .find("cholmod_finish", finish)
                                                .find("cholmod_version", find_version)
                                                .find("cholmod_analyze", analyze)
                                                .find("cholmod_copy_factor", copy_factor)
                                                .find("cholmod_factorize", factorize)
                                                .find("cholmod_solve", solve)
                                                .find("cholmod_free_factor", free_factor)
                                                .find("cholmod_free_dense", free_dense));
    int found[3] = {};
    if (complete) find_version(found);
    if (found[0] < abi::oldest || found[0] > abi::newest || !parameters_are_as_declared()) return;
    version = std::to_string(found[0]) + "." + std::to_string(found[1]);
  }

  // Structs are passed by pointer. `start` must set the parameters where they are declared, and stay within half of the
  // room that it is given.
  bool parameters_are_as_declared() const {
    constexpr std::byte untouched{0xA5};
    abi::Parameters parameters;
    std::memset(&parameters, std::to_integer<int>(untouched), sizeof parameters);
    start(&parameters);
    const auto& rest = parameters.rest;
    const bool fits = std::all_of(rest.begin() + rest.size() / 2, rest.end(), [](auto b) { return b == untouched; });
    const bool same = fits && parameters.are_defaults();
    if (same) finish(&parameters);
    return same;
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// CHOLMOD's parameters and workspace. Not for two threads at once, so every call has its own.
struct Common : abi::Parameters {
  Common() {
    library().start(this);
    print = 0;
  }
  ~Common() { library().finish(this); }
  Common(const Common&) = delete;
};

abi::Sparse lower_triangle(const SquareColumns& A) {
  abi::Sparse M{};
  M.rows = M.columns = A.n;
  M.capacity = A.ptr[A.n];
  M.ptr = const_cast<int*>(A.ptr);
  M.indices = const_cast<int*>(A.rows);
  M.values = const_cast<double*>(A.values);
  M.triangle = abi::lower_triangle;
  M.index_type = abi::int_indices;
  M.value_type = abi::real_values;
  M.precision = abi::double_precision;
  M.sorted = M.packed = 1;
  return M;
}

class CholmodFactor final : public EngineFactor {
 public:
  explicit CholmodFactor(abi::Factor* L) : L_(L), pivots_(L->n, 0.0) {
    for (size_t k = 0; k < L->first_bad_step; ++k) pivots_[column(k)] = squared(L->is_ll, diagonal(k));
    for (size_t k = 0; k < L->n && broken_ < 0; ++k)
      if (!(pivots_[column(k)] > 0)) broken_ = column(k);
  }
  ~CholmodFactor() override {
    Common common;
    library().free_factor(&L_, &common);
  }
  void solve(double* x, int64_t columns, bool) const override {
    Common common;
    abi::Dense B{};
    B.rows = B.stride = L_->n;
    B.columns = columns;
    B.capacity = L_->n * columns;
    B.values = x;
    B.value_type = abi::real_values;
    B.precision = abi::double_precision;
    abi::Dense* X = library().solve(abi::solve_all, L_, &B, &common);
    if (!X) throw std::bad_alloc();
    std::copy_n(static_cast<const double*>(X->values), B.capacity, x);
    library().free_dense(&X, &common);
  }
  double pivot(int64_t k) const override { return pivots_[k]; }
  int sign() const override { return 1; }
  int64_t broken() const { return broken_; }

 private:
  static double squared(bool ll, double entry) { return ll ? entry * entry : entry; }
  int column(size_t step) const { return static_cast<const int*>(L_->order)[step]; }
  // L_kk of L Lᵀ, or D_kk of L D Lᵀ.
  double diagonal(size_t k) {
    const auto* x = static_cast<const double*>(L_->values);
    if (!L_->is_blocked) return x[static_cast<const int*>(L_->ptr)[k]];
    const auto *first = static_cast<const int*>(L_->block_columns),
               *rows = static_cast<const int*>(L_->block_indices_ptr),
               *start = static_cast<const int*>(L_->block_values_ptr);
    while (static_cast<size_t>(first[block_ + 1]) <= k) ++block_;
    const int64_t height = rows[block_ + 1] - rows[block_], at = static_cast<int64_t>(k) - first[block_];
    return x[start[block_] + at * (height + 1)];
  }

  abi::Factor* L_;
  int64_t block_ = 0;  // the supernode of the last diagonal entry that was read
  std::vector<double> pivots_;
  int64_t broken_ = -1;
};

class CholmodAnalysis final : public Analysis {
 public:
  explicit CholmodAnalysis(const SquareColumns& A) {
    Common common;
    abi::Sparse M = lower_triangle(A);
    symbolic_ = library().analyze(&M, &common);
  }
  ~CholmodAnalysis() override {
    Common common;
    if (symbolic_) library().free_factor(&symbolic_, &common);
  }
  Factored factorize(const SquareColumns& A) const override {
    if (!symbolic_) return {};
    Common common;
    abi::Sparse M = lower_triangle(A);
    abi::Factor* L = library().copy_factor(symbolic_, &common);
    if (!L) return {};
    if (!library().factorize(&M, L, &common) || !L->values) {  // out of memory, say
      library().free_factor(&L, &common);
      return {};
    }
    auto factor = std::make_unique<CholmodFactor>(L);
    if (factor->broken() >= 0) return {nullptr, factor->broken()};
    return {std::move(factor), -1};
  }

 private:
  abi::Factor* symbolic_ = nullptr;
};

}  // namespace

const Engine cholmod = {
    "cholmod", [] { return library().version; }, nullptr,
    [](const SquareColumns& A) -> std::unique_ptr<Analysis> { return std::make_unique<CholmodAnalysis>(A); }};

}  // namespace gossamer
