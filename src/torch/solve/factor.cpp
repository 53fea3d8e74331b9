// SPDX-License-Identifier: BSD-3-Clause
#include "solve/factor.h"

#include <ATen/ops/from_blob.h>

#include <cmath>
#include <unordered_map>

#include "solve/solve.h"

namespace gossamer {
namespace {

// Objects under numbers that are never used twice.
template <class T>
class Registry {
 public:
  static Registry& instance() {
    static auto* registry = new Registry;  // never destroyed: handles may outlive the end of main
    return *registry;
  }
  at::Tensor keep(std::vector<std::shared_ptr<const T>> objects, at::IntArrayRef size) {
    const std::lock_guard lock(mutex_);
    auto* numbers = new std::vector<int64_t>(std::max<size_t>(objects.size(), 1));
    for (size_t k = 0; k < objects.size(); ++k) objects_[(*numbers)[k] = next_++] = std::move(objects[k]);
    return at::from_blob(
        numbers->data(), size, [this, numbers](void*) { drop(numbers); }, at::TensorOptions().dtype(at::kLong));
  }
  std::shared_ptr<const T> at(int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(number);
    TORCH_CHECK(found != objects_.end(), "factor_solve: this factor is gone; keep the tensor that factorize returned");
    return found->second;
  }

 private:
  void drop(std::vector<int64_t>* numbers) {
    std::vector<std::shared_ptr<const T>> dropped;  // freed after the lock
    const std::lock_guard lock(mutex_);
    for (const int64_t number : *numbers)
      if (const auto found = objects_.find(number); found != objects_.end()) {
        dropped.push_back(std::move(found->second));
        objects_.erase(found);
      }
    delete numbers;
  }
  std::mutex mutex_;
  std::unordered_map<int64_t, std::shared_ptr<const T>> objects_;
  int64_t next_ = 1;
};

double power_of_two(double size) {
  int exponent = 0;
  std::frexp(size, &exponent);
  return std::ldexp(1.0, -exponent);
}

}  // namespace

Kind kind_named(const std::string& name) {
  TORCH_CHECK_VALUE(name == "auto" || name == "lu" || name == "cholesky",
                    "factorize: kind must be \"auto\", \"lu\" or \"cholesky\", not \"", name, "\"");
  return name == "auto" ? Kind::automatic : name == "lu" ? Kind::lu : Kind::cholesky;
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

const Analysis& PatternAnalysis::analysis(const Engine& engine, Kind kind) const {
  const std::lock_guard lock(mutex_);
  auto& found = analyses_[{&engine, kind}];
  if (!found) {
    const std::vector<double> ones(rows_.size(), 1.0);
    const auto analyze = kind == Kind::lu ? engine.lu : engine.cholesky;
    found = analyze(with_values(ones.data()));
  }
  return *found;
}

double PatternAnalysis::multiplications(Kind kind) const {
  if (kind == Kind::cholesky) return analysis(eigen, kind).multiplications();
  const std::lock_guard lock(mutex_);
  if (lu_multiplications_ < 0) {
    const std::vector<double> ones(rows_.size(), 1.0);
    lu_multiplications_ = gossamer::multiplications(with_values(ones.data()));
  }
  return lu_multiplications_;
}

Factored PatternAnalysis::factorize(Kind kind, const std::string& wanted, const SquareColumns& A,
                                    std::string& by) const {
  Factored result;
  for (const Engine* engine :
       engines_for(kind, wanted, [&] { return multiplications(kind) / static_cast<double>(n_); })) {
    by = engine->name;
    result = analysis(*engine, kind).factorize(A);
    if (result.factor || result.column >= 0) break;
  }
  return result;
}

MatrixFactor::MatrixFactor(const PatternAnalysis& pattern, std::vector<double> values, Kind kind,
                           const std::string& engine)
    : row_scale_(pattern.n(), 0.0), column_scale_(pattern.n(), 0.0) {
  const SquareColumns A = pattern.with_values(values.data());
  for (int q = 0; q < A.ptr[A.n]; ++q)
    TORCH_CHECK_VALUE(std::isfinite(values[q]), "factorize: the matrix has an entry that is not finite in row ",
                      A.rows[q]);
  bool symmetric = pattern.symmetric(values);
  TORCH_CHECK_VALUE(symmetric || kind != Kind::cholesky, "factorize: kind \"cholesky\" wants a symmetric matrix");
  for (int j = 0; j < A.n && symmetric && kind != Kind::lu; ++j) {
    const int* end = A.rows + A.ptr[j + 1];
    const int* diagonal = std::lower_bound(A.rows + A.ptr[j], end, j);
    symmetric = diagonal != end && *diagonal == j && values[diagonal - A.rows] > 0;
    TORCH_CHECK_VALUE(symmetric || kind != Kind::cholesky,
                      "factorize: the matrix is not positive definite: the diagonal of column ", j, " is not positive");
  }
  const std::vector<double> unscaled = values;
  scale(pattern, values, symmetric && kind != Kind::lu);
  if (kind != Kind::lu && symmetric) {
    Factored result = pattern.factorize(Kind::cholesky, engine, A, engine_);
    factor_ = std::move(result.factor);
    TORCH_CHECK_VALUE(factor_ || kind != Kind::cholesky,
                      "factorize: the matrix is not positive definite: the pivot of column ", result.column,
                      " is not positive");
    if (!factor_) {
      values = unscaled;
      scale(pattern, values, /*symmetric=*/false);
    }
  }
  if (!factor_) {
    Factored result = pattern.factorize(Kind::lu, engine, pattern.with_values(values.data()), engine_);
    if (!result.factor) throw_singular("factorize", "no pivot for column ", result.column);
    factor_ = std::move(result.factor);
  }
  const int64_t lost = factor_->lost_pivot(pattern.n());
  if (lost >= 0) throw_singular("factorize", "the pivot of column ", lost, " is ", factor_->pivot(lost));
}

// R A C in place, and the norms of A.
void MatrixFactor::scale(const PatternAnalysis& pattern, std::vector<double>& values, bool symmetric) {
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
    row_scale_[i] = symmetric ? power_of_two(std::sqrt(row_size[i])) : power_of_two(row_size[i]);
  }
  for (int j = 0; j < n; ++j) {
    double most = 0;
    for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) most = std::max(most, std::abs(values[q] * row_scale_[A.rows[q]]));
    column_scale_[j] = symmetric ? row_scale_[j] : power_of_two(most);
    for (int q = A.ptr[j]; q < A.ptr[j + 1]; ++q) values[q] *= row_scale_[A.rows[q]] * column_scale_[j];
  }
}

void MatrixFactor::solve(double* x, int64_t columns, bool t) const {
  const int64_t size = n();
  const auto &before = t ? column_scale_ : row_scale_, &after = t ? row_scale_ : column_scale_;
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t i = 0; i < size; ++i) x[c * size + i] *= before[i];
  factor_->solve(x, columns, t);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t i = 0; i < size; ++i) x[c * size + i] *= after[i];
}

double MatrixFactor::log_abs_det() const {
  double sum = 0;
  for (int64_t k = 0; k < n(); ++k) sum += std::log(factor_->pivot(k) / row_scale_[k] / column_scale_[k]);
  return sum;
}

at::Tensor handle_of(std::vector<std::shared_ptr<const PatternAnalysis>> objects, at::IntArrayRef size) {
  return Registry<PatternAnalysis>::instance().keep(std::move(objects), size);
}
at::Tensor handle_of(std::vector<std::shared_ptr<const MatrixFactor>> objects, at::IntArrayRef size) {
  return Registry<MatrixFactor>::instance().keep(std::move(objects), size);
}
std::shared_ptr<const PatternAnalysis> analysis_at(const at::Tensor& handle) {
  return Registry<PatternAnalysis>::instance().at(handle.item<int64_t>());
}
std::vector<std::shared_ptr<const MatrixFactor>> factors_at(const at::Tensor& handle) {
  const at::Tensor numbers = handle.reshape(-1).contiguous();
  std::vector<std::shared_ptr<const MatrixFactor>> found;
  for (int64_t k = 0; k < numbers.numel(); ++k)
    found.push_back(Registry<MatrixFactor>::instance().at(numbers.const_data_ptr<int64_t>()[k]));
  return found;
}

}  // namespace gossamer
