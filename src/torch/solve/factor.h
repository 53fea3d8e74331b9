// SPDX-License-Identifier: BSD-3-Clause
// A factored matrix, and the analysis of its pattern. Through ops they travel as handles: int64 tensors of numbers
// under which a registry keeps the objects, until the storage of the handle is freed. A number whose object is gone is
// an error, never a wild pointer.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "solve/engines/engine.h"

namespace gossamer {

Kind kind_named(const std::string& name);

// A square pattern by columns, and what the engines found out about it, each when it is first asked for.
class PatternAnalysis {
 public:
  // perm: entry q by columns is entry perm[q] by rows.
  PatternAnalysis(int64_t n, std::vector<int> ptr, std::vector<int> rows, std::vector<int64_t> perm, bool symmetric)
      : n_(n), ptr_(std::move(ptr)), rows_(std::move(rows)), perm_(std::move(perm)), symmetric_(symmetric) {}

  int64_t n() const { return n_; }
  int64_t nnz() const { return static_cast<int64_t>(rows_.size()); }
  SquareColumns with_values(const double* by_columns) const {
    return {static_cast<int>(n_), ptr_.data(), rows_.data(), by_columns};
  }
  std::vector<double> by_columns(const double* values, int64_t step) const;
  bool symmetric(const std::vector<double>& by_columns) const;  // pattern and values
  // The factors of A by the engine that is wanted, or by the next one that can; `by` becomes its name.
  Factored factorize(Kind kind, const std::string& wanted, const SquareColumns& A, std::string& by) const;

 private:
  int64_t n_;
  std::vector<int> ptr_, rows_;
  std::vector<int64_t> perm_;
  bool symmetric_;
  const Analysis& analysis(const Engine& engine, Kind kind) const;
  double multiplications(Kind kind) const;

  mutable std::recursive_mutex mutex_;
  mutable std::map<std::pair<const Engine*, Kind>, std::unique_ptr<Analysis>> analyses_;
  mutable double lu_multiplications_ = -1;
};

// The factors of R A C, with R and C diagonal powers of two that bring all rows and columns to size 1.
class MatrixFactor {
 public:
  MatrixFactor(const PatternAnalysis& pattern, std::vector<double> by_columns, Kind kind, const std::string& engine);

  int64_t n() const { return static_cast<int64_t>(row_scale_.size()); }
  double norm(bool t) const { return t ? norm_t_ : norm_; }  // ‖A‖∞ or ‖Aᵀ‖∞
  void solve(double* x, int64_t columns, bool t) const;
  double log_abs_det() const;
  int sign() const { return factor_->sign(); }  // of det A: the scales are positive
  const std::string& engine() const { return engine_; }

 private:
  void scale(const PatternAnalysis& pattern, std::vector<double>& values, bool symmetric);

  std::vector<double> row_scale_, column_scale_;
  double norm_ = 0, norm_t_ = 0;
  std::unique_ptr<Factor> factor_;
  std::string engine_;
};

at::Tensor handle_of(std::vector<std::shared_ptr<const PatternAnalysis>> objects, at::IntArrayRef size);
at::Tensor handle_of(std::vector<std::shared_ptr<const MatrixFactor>> objects, at::IntArrayRef size);
std::shared_ptr<const PatternAnalysis> analysis_at(const at::Tensor& handle);
std::vector<std::shared_ptr<const MatrixFactor>> factors_at(const at::Tensor& handle);

}  // namespace gossamer
