// SPDX-License-Identifier: BSD-3-Clause
// UMFPACK (SuiteSparse, GPL-2.0-or-later): multifrontal LU with threshold pivoting. Loaded where it is installed; its
// functions take plain arrays, so they are declared here and no header is needed.
#include <array>
#include <cmath>

#include "solve/engines/engine.h"
#include "solve/engines/shared_library.h"

namespace gossamer {
namespace {

using Numbers = std::array<double, 90>;  // its Control has 20 and its Info 90

struct Library {
  void (*defaults)(double* control);
  int (*symbolic)(int rows, int cols, const int* ptr, const int* indices, const double* values, void** symbolic,
                  const double* control, double* info);
  int (*numeric)(const int* ptr, const int* indices, const double* values, void* symbolic, void** numeric,
                 const double* control, double* info);
  int (*solve)(int system, const int* ptr, const int* indices, const double* values, double* x, const double* b,
               void* numeric, const double* control, double* info);
  int (*get_numeric)(int* Lp, int* Lj, double* Lx, int* Up, int* Ui, double* Ux, int* P, int* Q, double* D,
                     int* reciprocal, double* scale, void* numeric);
  void (*free_symbolic)(void** symbolic);
  void (*free_numeric)(void** numeric);
  bool installed = false;
  Numbers control{};

  Library() {
    SharedLibrary library({"libumfpack.so.6", "libumfpack.so.5"}, own_symbols_first);
    installed = static_cast<bool>(library.find("umfpack_di_defaults", defaults)
                                      .find("umfpack_di_symbolic", symbolic)
                                      .find("umfpack_di_numeric", numeric)
                                      .find("umfpack_di_solve", solve)
                                      .find("umfpack_di_get_numeric", get_numeric)
                                      .find("umfpack_di_free_symbolic", free_symbolic)
                                      .find("umfpack_di_free_numeric", free_numeric));
    if (!installed) return;
    constexpr int refinement_steps = 7, scaling = 16;
    defaults(control.data());
    control[refinement_steps] = control[scaling] = 0;  // done by us, for all engines
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// A = P⁻¹ L U Q⁻¹: pivot k is U_kk, of row P_k and column Q_k.
class UmfpackFactor final : public EngineFactor {
 public:
  UmfpackFactor(int n, void* numeric) : numeric_(numeric), n_(n), pivots_(n) {
    std::vector<int> rows(n), columns(n);
    std::vector<double> diagonal(n);
    int reciprocal = 0;
    library().get_numeric(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, rows.data(), columns.data(),
                          diagonal.data(), &reciprocal, nullptr, numeric_);
    sign_ = parity(rows) * parity(columns);
    for (int k = 0; k < n; ++k) {
      pivots_[columns[k]] = std::abs(diagonal[k]);
      if (diagonal[k] < 0) sign_ = -sign_;
      if (!(pivots_[columns[k]] > 0)) broken_ = columns[k];
    }
  }
  ~UmfpackFactor() override { library().free_numeric(&numeric_); }

  void solve(double* x, int64_t columns, bool t) const override {
    std::vector<double> b(n_);
    Numbers info;
    for (int64_t c = 0; c < columns; ++c, x += n_) {
      b.assign(x, x + n_);
      library().solve(t, nullptr, nullptr, nullptr, x, b.data(), numeric_, library().control.data(), info.data());
    }
  }
  double pivot(int64_t k) const override { return pivots_[k]; }
  int sign() const override { return sign_; }
  int64_t broken() const { return broken_; }

 private:
  void* numeric_;
  int n_, sign_ = 1;
  std::vector<double> pivots_;
  int64_t broken_ = -1;
};

class UmfpackAnalysis final : public Analysis {
 public:
  explicit UmfpackAnalysis(const SquareColumns& A) {
    Numbers info;
    library().symbolic(A.n, A.n, A.ptr, A.rows, nullptr, &symbolic_, library().control.data(), info.data());
  }
  ~UmfpackAnalysis() override {
    if (symbolic_) library().free_symbolic(&symbolic_);
  }
  Factored factorize(const SquareColumns& A) const override {
    constexpr int ok = 0, singular = 1;
    if (!symbolic_) return {};
    void* numeric = nullptr;
    Numbers info;
    const int status =
        library().numeric(A.ptr, A.rows, A.values, symbolic_, &numeric, library().control.data(), info.data());
    if (status != ok && status != singular) return {};  // out of memory, say
    auto factor = std::make_unique<UmfpackFactor>(A.n, numeric);
    if (factor->broken() >= 0) return {nullptr, factor->broken()};
    return {std::move(factor), -1};
  }

 private:
  void* symbolic_ = nullptr;
};

}  // namespace

const Engine umfpack = {
    "umfpack", [] { return std::string(library().installed ? "(SuiteSparse)" : ""); },
    [](const SquareColumns& A) -> std::unique_ptr<Analysis> { return std::make_unique<UmfpackAnalysis>(A); }, nullptr};

}  // namespace gossamer
