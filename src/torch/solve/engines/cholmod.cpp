// SPDX-License-Identifier: BSD-3-Clause
// CHOLMOD (SuiteSparse; LGPL-2.1-or-later, its supernodal part GPL-2.0-or-later): Cholesky by dense blocks. Compiled
// where its header is found, loaded where the library of the header's version is installed.
#include "solve/engines/engine.h"

#if GOSSAMER_CHOLMOD
#include <cholmod.h>

#include <algorithm>

#include "solve/engines/shared_library.h"

namespace gossamer {
namespace {

struct Library {
  decltype(&cholmod_start) start;
  decltype(&cholmod_finish) finish;
  decltype(&cholmod_version) version;
  decltype(&cholmod_analyze) analyze;
  decltype(&cholmod_copy_factor) copy_factor;
  decltype(&cholmod_factorize) factorize;
  decltype(&cholmod_solve) solve;
  decltype(&cholmod_free_factor) free_factor;
  decltype(&cholmod_free_dense) free_dense;
  bool installed = false;

  Library() {
    const std::string name = "libcholmod.so." + std::to_string(CHOLMOD_MAIN_VERSION);
    SharedLibrary library({name}, own_symbols_first);
    installed = library.find("cholmod_start", start)
                    .find("cholmod_finish", finish)
                    .find("cholmod_version", version)
                    .find("cholmod_analyze", analyze)
                    .find("cholmod_copy_factor", copy_factor)
                    .find("cholmod_factorize", factorize)
                    .find("cholmod_solve", solve)
                    .find("cholmod_free_factor", free_factor)
                    .find("cholmod_free_dense", free_dense) &&
                same_layout();
  }
  // Structs are passed by pointer: they must be those of the header.
  bool same_layout() const {
    int found[3] = {};
    version(found);
    return found[0] == CHOLMOD_MAIN_VERSION && found[1] == CHOLMOD_SUB_VERSION;
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// CHOLMOD's parameters and workspace. Not for two threads at once, so every call has its own.
struct Common : cholmod_common {
  Common() {
    library().start(this);
    print = 0;
  }
  ~Common() { library().finish(this); }
  Common(const Common&) = delete;
};

cholmod_sparse lower_triangle(const SquareColumns& A) {
  cholmod_sparse M{};
  M.nrow = M.ncol = A.n;
  M.nzmax = A.ptr[A.n];
  M.p = const_cast<int*>(A.ptr);
  M.i = const_cast<int*>(A.rows);
  M.x = const_cast<double*>(A.values);
  M.stype = -1;
  M.itype = CHOLMOD_INT;
  M.xtype = CHOLMOD_REAL;
  M.dtype = CHOLMOD_DOUBLE;
  M.sorted = M.packed = 1;
  return M;
}

class CholmodFactor final : public EngineFactor {
 public:
  // `minor` is the first step without a positive pivot, or n.
  explicit CholmodFactor(cholmod_factor* L) : L_(L), pivots_(L->n, 0.0) {
    for (size_t k = 0; k < L->minor; ++k) pivots_[column(k)] = squared(L->is_ll, diagonal(k));
    for (size_t k = 0; k < L->n && broken_ < 0; ++k)
      if (!(pivots_[column(k)] > 0)) broken_ = column(k);
  }
  ~CholmodFactor() override {
    Common common;
    library().free_factor(&L_, &common);
  }
  void solve(double* x, int64_t columns, bool) const override {
    Common common;
    cholmod_dense B{};
    B.nrow = B.d = L_->n;
    B.ncol = columns;
    B.nzmax = L_->n * columns;
    B.x = x;
    B.xtype = CHOLMOD_REAL;
    B.dtype = CHOLMOD_DOUBLE;
    cholmod_dense* X = library().solve(CHOLMOD_A, L_, &B, &common);
    if (!X) throw std::bad_alloc();
    std::copy_n(static_cast<const double*>(X->x), B.nzmax, x);
    library().free_dense(&X, &common);
  }
  double pivot(int64_t k) const override { return pivots_[k]; }
  int sign() const override { return 1; }
  int64_t broken() const { return broken_; }

 private:
  static double squared(bool ll, double entry) { return ll ? entry * entry : entry; }
  int column(size_t step) const { return static_cast<const int*>(L_->Perm)[step]; }
  // L_kk of L Lᵀ, or D_kk of L D Lᵀ.
  double diagonal(size_t k) {
    const auto* x = static_cast<const double*>(L_->x);
    if (!L_->is_super) return x[static_cast<const int*>(L_->p)[k]];
    const auto *first = static_cast<const int*>(L_->super), *rows = static_cast<const int*>(L_->pi),
               *start = static_cast<const int*>(L_->px);
    while (static_cast<size_t>(first[block_ + 1]) <= k) ++block_;
    const int64_t height = rows[block_ + 1] - rows[block_], at = static_cast<int64_t>(k) - first[block_];
    return x[start[block_] + at * (height + 1)];
  }

  cholmod_factor* L_;
  int64_t block_ = 0;  // the supernode of the last diagonal entry that was read
  std::vector<double> pivots_;
  int64_t broken_ = -1;
};

class CholmodAnalysis final : public Analysis {
 public:
  explicit CholmodAnalysis(const SquareColumns& A) {
    Common common;
    cholmod_sparse M = lower_triangle(A);
    symbolic_ = library().analyze(&M, &common);
  }
  ~CholmodAnalysis() override {
    Common common;
    if (symbolic_) library().free_factor(&symbolic_, &common);
  }
  Factored factorize(const SquareColumns& A) const override {
    if (!symbolic_) return {};
    Common common;
    cholmod_sparse M = lower_triangle(A);
    cholmod_factor* L = library().copy_factor(symbolic_, &common);
    if (!L) return {};
    library().factorize(&M, L, &common);
    if (common.status < 0) {  // out of memory, say
      library().free_factor(&L, &common);
      return {};
    }
    auto factor = std::make_unique<CholmodFactor>(L);
    if (factor->broken() >= 0) return {nullptr, factor->broken()};
    return {std::move(factor), -1};
  }

 private:
  cholmod_factor* symbolic_ = nullptr;
};

std::string version() {
  if (!library().installed) return "";
  return std::to_string(CHOLMOD_MAIN_VERSION) + "." + std::to_string(CHOLMOD_SUB_VERSION);
}

}  // namespace

const Engine cholmod = {"cholmod", version, nullptr, [](const SquareColumns& A) -> std::unique_ptr<Analysis> {
                          return std::make_unique<CholmodAnalysis>(A);
                        }};

}  // namespace gossamer

#else

namespace gossamer {
const Engine cholmod = {"cholmod", [] { return std::string(); }, nullptr, nullptr};
}  // namespace gossamer

#endif
