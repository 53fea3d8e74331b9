// SPDX-License-Identifier: BSD-3-Clause
// Classes: PatternAnalysis, what is known of a pattern before it is factored, and FactoredMatrix, for which a handle of
// a factor stands: on the host a ScaledFactor, on a device a DeviceHead (device/device_factor.h). The ops that make
// them are in factorize.cpp; as handles (handles.h) they travel from op to op.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "solve/engines/engine.h"
#include "solve/handles.h"

namespace gossamer {

FactorKind kind_named(const std::string& name);  // "auto", "lu" or "cholesky"

class DevicePattern;

// A square pattern by columns, and what the engines found out about it, each when it is first asked for.
class PatternAnalysis {
 public:
  // perm: entry q by columns is entry perm[q] by rows. device: the same pattern there, if that is where it comes from.
  PatternAnalysis(int64_t n, std::vector<int> ptr, std::vector<int> rows, std::vector<int64_t> perm, bool symmetric,
                  std::shared_ptr<const DevicePattern> device)
      : n_(n),
        ptr_(std::move(ptr)),
        rows_(std::move(rows)),
        perm_(std::move(perm)),
        symmetric_(symmetric),
        device_(std::move(device)) {}

  int64_t n() const { return n_; }
  int64_t nnz() const { return static_cast<int64_t>(rows_.size()); }
  SquareColumns with_values(const double* by_columns) const {
    return {static_cast<int>(n_), ptr_.data(), rows_.data(), by_columns};
  }
  const std::vector<int64_t>& perm() const { return perm_; }
  const DevicePattern* device() const { return device_.get(); }
  std::vector<double> by_columns(const double* values, int64_t step) const;
  bool symmetric() const { return symmetric_; }
  bool symmetric(const std::vector<double>& by_columns) const;  // both the pattern and the values
  // The factors of A by the engine of this name ("auto": by the best one), or by the next one that can. `made_by`
  // becomes the name of the one that did.
  Factored factorize(FactorKind kind, const std::string& engine, const SquareColumns& A, std::string& made_by) const;
  std::shared_ptr<const AssemblyTree> cholesky_tree() const {
    return analysis(multifrontal, FactorKind::cholesky).tree();
  }
  PivotOrder cholesky_order() const { return analysis(multifrontal, FactorKind::cholesky).order(); }

 private:
  const Analysis& analysis(const Engine& engine, FactorKind kind) const;
  double lu_multiplications() const;

  int64_t n_;
  std::vector<int> ptr_, rows_;
  std::vector<int64_t> perm_;
  bool symmetric_;
  std::shared_ptr<const DevicePattern> device_;
  mutable std::recursive_mutex mutex_;
  mutable std::map<std::pair<const Engine*, FactorKind>, std::unique_ptr<Analysis>> analyses_;
  mutable double lu_multiplications_ = -1;
};

class FactoredMatrix {
 public:
  virtual ~FactoredMatrix() = default;
  virtual int64_t n() const = 0;
  virtual std::string engine() const = 0;
};

// The factors of R A C, with R and C diagonal powers of two that bring all rows and columns to size 1.
class ScaledFactor final : public FactoredMatrix {
 public:
  ScaledFactor(const PatternAnalysis& pattern, std::vector<double> by_columns, FactorKind kind,
               const std::string& engine);

  int64_t n() const override { return static_cast<int64_t>(row_scale_.size()); }
  std::string engine() const override { return engine_; }
  double norm(bool t) const { return t ? norm_t_ : norm_; }   // ‖A‖∞ or ‖Aᵀ‖∞
  void solve(double* x, int64_t columns, bool t) const;       // n × columns, one column after the other
  void solve_rows(double* x, int64_t columns, bool t) const;  // the same, one row after the other
  double log_abs_det() const;
  int sign() const { return factor_->sign(); }  // of det A: the scales are positive
  bool is_cholesky() const { return is_cholesky_; }
  double pivot(int64_t k) const { return factor_->pivot(k); }  // of R A C
  PivotOrder order() const { return factor_->order(); }
  const InverseBlocks* blocks() const { return factor_->blocks(); }  // of R A R; null: the engine has none
  const std::vector<double>& row_scale() const { return row_scale_; }

 private:
  void scale(const PatternAnalysis& pattern, std::vector<double>& values, bool symmetric);

  std::vector<double> row_scale_, column_scale_;
  double norm_ = 0, norm_t_ = 0;
  std::unique_ptr<EngineFactor> factor_;
  std::string engine_;
  bool is_cholesky_ = false;
};

}  // namespace gossamer
