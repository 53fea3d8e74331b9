// SPDX-License-Identifier: BSD-3-Clause
#include "solve/factor.h"

#include <algorithm>
#include <cmath>

#include "solve/solve.h"

namespace gossamer {
namespace {

// The power of two that brings a number of this size between 1/2 and 1.
double power_of_two(double size) {
  int exponent = 0;
  std::frexp(size, &exponent);
  return std::ldexp(1.0, -exponent);
}

// What brings a row or a column to size 1. Rows come first and columns take what is left, or the other way round.
struct Scales {
  std::vector<double> rows, columns;
};

Scales scales_of(const SquareColumns& A, bool rows_first) {
  Scales s{std::vector<double>(A.n, 1.0), std::vector<double>(A.n, 1.0)};
  const auto set = [&](std::vector<double>& scale, bool of_rows) {
    std::vector<double> most(A.n, 0.0);
    for (int j = 0; j < A.n; ++j)
      for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) {
        double& size = most[of_rows ? A.rows[q] : j];
        size = std::max(size, std::abs(A.values[q]) * s.rows[A.rows[q]] * s.columns[j]);
      }
    for (int k = 0; k < A.n; ++k) scale[k] = power_of_two(most[k]);
  };
  set(rows_first ? s.rows : s.columns, rows_first);
  set(rows_first ? s.columns : s.rows, !rows_first);
  return s;
}

// Σ log2² of the scaled entries: how far they are from being of one size.
double spread(const SquareColumns& A, const Scales& s) {
  double sum = 0;
  for (int j = 0; j < A.n; ++j)
    for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) {
      if (A.values[q] == 0) continue;
      const double distance = std::ilogb(A.values[q]) + std::ilogb(s.rows[A.rows[q]]) + std::ilogb(s.columns[j]);
      sum += distance * distance;
    }
  return sum;
}

}  // namespace

FactorKind kind_named(const std::string& name) {
  TORCH_CHECK_VALUE(name == "auto" || name == "lu" || name == "cholesky",
                    "factorize: kind must be \"auto\", \"lu\" or \"cholesky\", not \"", name, "\"");
  return name == "auto" ? FactorKind::automatic : name == "lu" ? FactorKind::lu : FactorKind::cholesky;
}

std::vector<double> PatternAnalysis::by_columns(const double* values, int64_t step) const {
  std::vector<double> result(perm_.size());
  for (size_t q = 0; q < perm_.size(); ++q) result[q] = values[perm_[q] * step];
  return result;
}

// Symmetric patterns list their entries in the same order by rows and by columns.
bool PatternAnalysis::symmetric(const std::vector<double>& by_columns) const {
  if (!symmetric_) return false;
  for (size_t q = 0; q < perm_.size(); ++q)
    if (by_columns[q] != by_columns[perm_[q]]) return false;
  return true;
}

const Analysis& PatternAnalysis::analysis(const Engine& engine, FactorKind kind) const {
  const std::lock_guard lock(mutex_);
  auto& found = analyses_[{&engine, kind}];
  if (!found) {
    const std::vector<double> ones(rows_.size(), 1.0);
    const auto analyze = kind == FactorKind::lu ? engine.lu : engine.cholesky;
    found = analyze(with_values(ones.data()));
  }
  return *found;
}

double PatternAnalysis::lu_multiplications() const {
  const std::lock_guard lock(mutex_);
  if (lu_multiplications_ < 0) {
    const std::vector<double> ones(rows_.size(), 1.0);
    lu_multiplications_ = gossamer::multiplications(with_values(ones.data()));
  }
  return lu_multiplications_;
}

Factored PatternAnalysis::factorize(FactorKind kind, const std::string& engine, const SquareColumns& A,
                                    std::string& made_by) const {
  Factored result;
  for (const Engine* candidate :
       engines_for(kind, engine, [&] { return lu_multiplications() / static_cast<double>(n_); })) {
    made_by = candidate->name;
    result = analysis(*candidate, kind).factorize(A);
    if (result.factor || result.column >= 0) break;
  }
  return result;
}

ScaledFactor::ScaledFactor(const PatternAnalysis& pattern, std::vector<double> values, FactorKind kind,
                           const std::string& engine)
    : row_scale_(pattern.n(), 0.0), column_scale_(pattern.n(), 0.0) {
  const SquareColumns A = pattern.with_values(values.data());
  for (int q = 0; q < A.ptr[A.n]; ++q)
    TORCH_CHECK_VALUE(std::isfinite(values[q]), "factorize: the matrix has an entry that is not finite in row ",
                      A.rows[q]);
  bool symmetric = pattern.symmetric(values);
  TORCH_CHECK_VALUE(symmetric || kind != FactorKind::cholesky, "factorize: kind \"cholesky\" wants a symmetric matrix");
  for (int j = 0; j < A.n && symmetric && kind != FactorKind::lu; ++j) {
    const int* end = A.rows + A.ptr[j + 1];
    const int* diagonal = std::lower_bound(A.rows + A.ptr[j], end, j);
    symmetric = diagonal != end && *diagonal == j && values[diagonal - A.rows] > 0;
    TORCH_CHECK_VALUE(symmetric || kind != FactorKind::cholesky,
                      "factorize: the matrix is not positive definite: the diagonal of column ", j, " is not positive");
  }
  const std::vector<double> unscaled = values;
  scale(pattern, values, symmetric && kind != FactorKind::lu);
  if (kind != FactorKind::lu && symmetric) {
    Factored result = pattern.factorize(FactorKind::cholesky, engine, A, engine_);
    factor_ = std::move(result.factor);
    is_cholesky_ = factor_ != nullptr;
    TORCH_CHECK_VALUE(factor_ || kind != FactorKind::cholesky,
                      "factorize: the matrix is not positive definite: the pivot of column ", result.column,
                      " is not positive");
    if (!factor_) {
      values = unscaled;
      scale(pattern, values, /*symmetric=*/false);
    }
  }
  if (!factor_) {
    Factored result = pattern.factorize(FactorKind::lu, engine, pattern.with_values(values.data()), engine_);
    if (!result.factor) throw_singular("factorize", "no pivot for column ", result.column);
    factor_ = std::move(result.factor);
  }
  const int64_t lost = factor_->lost_pivot(pattern.n());
  if (lost >= 0) throw_singular("factorize", "the pivot of column ", lost, " is ", factor_->pivot(lost));
}

// R A C in place, and the norms of A. Of the two orders the one is taken that leaves entries nearer to one size: for
// diag(r) A or A diag(c) with huge differences in r or c, one of them finds these again, and the other makes a matrix
// that looks singular.
void ScaledFactor::scale(const PatternAnalysis& pattern, std::vector<double>& values, bool symmetric) {
  const SquareColumns A = pattern.with_values(values.data());
  const int n = A.n;
  std::vector<double> row_size(n, 0.0), row_sum(n, 0.0);
  norm_ = norm_t_ = 0;
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) {
      const double size = std::abs(values[q]);
      sum += size;
      row_sum[A.rows[q]] += size;
      row_size[A.rows[q]] = std::max(row_size[A.rows[q]], size);
    }
    norm_t_ = std::max(norm_t_, sum);
    if (sum == 0) throw_singular("factorize", "column ", j, " is zero");
  }
  for (int i = 0; i < n; ++i) {
    norm_ = std::max(norm_, row_sum[i]);
    if (row_size[i] == 0) throw_singular("factorize", "row ", i, " is zero");
    row_scale_[i] = column_scale_[i] = power_of_two(std::sqrt(row_size[i]));
  }
  if (!symmetric) {
    Scales by_rows = scales_of(A, /*rows_first=*/true), by_columns = scales_of(A, /*rows_first=*/false);
    Scales& best = spread(A, by_columns) < spread(A, by_rows) ? by_columns : by_rows;
    row_scale_ = std::move(best.rows), column_scale_ = std::move(best.columns);
  }
  for (int j = 0; j < n; ++j)
    for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) values[q] = values[q] * row_scale_[A.rows[q]] * column_scale_[j];
}

void ScaledFactor::solve(double* x, int64_t columns, bool t) const {
  const int64_t size = n();
  const auto &before = t ? column_scale_ : row_scale_, &after = t ? row_scale_ : column_scale_;
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t i = 0; i < size; ++i) x[c * size + i] *= before[i];
  factor_->solve(x, columns, t);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t i = 0; i < size; ++i) x[c * size + i] *= after[i];
}

void ScaledFactor::solve_rows(double* x, int64_t columns, bool t) const {
  const auto &before = t ? column_scale_ : row_scale_, &after = t ? row_scale_ : column_scale_;
  const auto scale = [&](const std::vector<double>& scales) {
    for (int64_t i = 0; i < n(); ++i)
      for (int64_t c = 0; c < columns; ++c) x[i * columns + c] *= scales[i];
  };
  scale(before);
  factor_->solve_rows(n(), x, columns, t);
  scale(after);
}

double ScaledFactor::log_abs_det() const {
  double sum = 0;
  for (int64_t k = 0; k < n(); ++k) sum += std::log(factor_->pivot(k) / row_scale_[k] / column_scale_[k]);
  return sum;
}

}  // namespace gossamer
