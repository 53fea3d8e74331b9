// SPDX-License-Identifier: BSD-3-Clause
// The choice of pivots for matrices on a device, and when to choose again. Pivots that are kept serve all matrices on
// their pattern for which a trial solve has a small backward error. Where it has not, the values go to the host, which
// pivots as it always does, and says what is wrong with a matrix that has no factors. What cuDSS cannot do is left to
// our own kernels.
#include <ATen/ATen.h>

#include <numeric>

#include "core/host.h"
#include "solve/device/cudss.h"
#include "solve/device/device_factor.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

using Heads = std::vector<int64_t>;

// For a positive definite matrix any order has pivots, so that the pattern alone decides; null if it is not symmetric.
std::shared_ptr<const Elimination> by_pattern(const PatternAnalysis& pattern, FactorKind kind, at::Device device) {
  if (kind == FactorKind::lu || !pattern.symmetric()) return nullptr;
  return std::make_shared<const Elimination>(pattern.with_values(nullptr), pattern.perm(), pattern.cholesky_order(),
                                             /*symmetric=*/true, device);
}

// One matrix is copied to the host and factored there. Throws what the host throws.
std::shared_ptr<const Elimination> by_values(const PatternAnalysis& pattern, FactorKind kind, const Tensor& values) {
  const Tensor host = values.cpu().contiguous();
  const ScaledFactor factor(pattern, pattern.by_columns(host.const_data_ptr<double>(), 1), kind, "eigen");
  return std::make_shared<const Elimination>(pattern.with_values(nullptr), pattern.perm(), factor.order(),
                                             factor.is_cholesky(), values.device());
}

// The heads whose factors solve. One look where that is all of them.
Heads solved(const DeviceFactor& factor, double tolerance) {
  Heads good(factor.heads());
  std::iota(good.begin(), good.end(), 0);
  if (factor.error().max().item<double>() <= tolerance) return good;
  const Tensor errors = factor.error().cpu();
  std::erase_if(good, [&](int64_t h) { return !(errors.const_data_ptr<double>()[h] <= tolerance); });
  return good;
}

Tensor columns_of(const Tensor& values, const Heads& heads) {
  if (static_cast<int64_t>(heads.size()) == values.size(1)) return values;
  std::vector<Tensor> columns;
  for (const int64_t h : heads) columns.push_back(values.select(1, h));
  return at::stack(columns, 1);
}

Objects<FactoredMatrix> by_elimination(const PatternAnalysis& pattern, const DevicePattern& A, const Tensor& values,
                                       FactorKind kind) {
  Objects<FactoredMatrix> factors(values.size(1));
  Heads missing(values.size(1));
  std::iota(missing.begin(), missing.end(), 0);
  auto elimination = A.kept(kind);
  if (!elimination) elimination = by_pattern(pattern, kind, A.device());
  while (!missing.empty()) {
    const bool chosen = !elimination;  // for the first of the missing ones, which must then be content with it
    if (chosen) elimination = by_values(pattern, kind, values.select(1, missing[0]));
    const auto factor =
        std::make_shared<const DeviceFactor>(A, columns_of(values, missing), elimination->symmetric(),
                                             [&](const Tensor& scaled) { return eliminated(elimination, scaled); });
    if (chosen) {
      const double error = factor->error()[0].item<double>();
      if (!(error < Elimination::large_error))
        throw_singular("factorize", "with pivots that the host chose, the backward error is ", error);
      elimination->tolerance = std::max(Elimination::small_error, 8 * error);
    }
    const Heads good = solved(*factor, elimination->tolerance);
    for (const int64_t k : good) factors[missing[k]] = std::make_shared<const DeviceHead>(factor, k);
    if (!good.empty()) A.keep(kind, elimination);
    std::erase_if(missing, [&](int64_t h) { return factors[h] != nullptr; });
    elimination = nullptr;
  }
  return factors;
}

// None where cuDSS has no factors, or they solve badly.
Objects<FactoredMatrix> by_cudss(const std::shared_ptr<const PatternAnalysis>& pattern, const DevicePattern& A,
                                 const Tensor& values, FactorKind kind) {
  for (const bool symmetric : {true, false}) {
    if (symmetric ? kind == FactorKind::lu || !pattern->symmetric() : kind == FactorKind::cholesky) continue;
    const auto factor = std::make_shared<const DeviceFactor>(A, values, symmetric, [&](const Tensor& scaled) {
      const auto ours = [=] { return by_elimination(*pattern, *pattern->device(), scaled, kind); };
      return factored_by_cudss(A, scaled, symmetric, ours);
    });
    if (!(factor->error().max().item<double>() <= Elimination::small_error)) continue;
    Objects<FactoredMatrix> heads;
    for (int64_t h = 0; h < factor->heads(); ++h) heads.push_back(std::make_shared<const DeviceHead>(factor, h));
    return heads;
  }
  return {};
}

}  // namespace

Objects<FactoredMatrix> factorize_on_device(const std::shared_ptr<const PatternAnalysis>& pattern, const Tensor& values,
                                            FactorKind kind, const std::string& engine) {
  const DevicePattern& A = *pattern->device();
  Objects<FactoredMatrix> factors;
  if (engine == "cudss") factors = by_cudss(pattern, A, values, kind);
  return factors.empty() ? by_elimination(*pattern, A, values, kind) : factors;
}

}  // namespace gossamer
