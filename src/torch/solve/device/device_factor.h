// SPDX-License-Identifier: BSD-3-Clause
// Classes: DeviceFactor, the factors of matrices on a device, one a head, and DeviceHead, one of them, for which a
// handle stands. What the host must know is one number, and reading it is said to be a look.
#pragma once
#include <memory>
#include <string>

#include "solve/device/device_pattern.h"
#include "solve/device/scales.h"
#include "solve/factor.h"

namespace gossamer {

// What made and holds the factors of R A C: an Elimination of ours, or a library.
class DeviceEngineFactor {
 public:
  virtual ~DeviceEngineFactor() = default;
  virtual const char* engine() const = 0;
  virtual bool symmetric() const = 0;                       // made of a positive definite matrix
  virtual Tensor solve(const Tensor& b, bool t) const = 0;  // (n, H, k)
  virtual Tensor good(const Tensor& values) const = 0;      // (H): no pivot is lost, or of the wrong sign
  virtual Tensor log_abs_det() const = 0;                   // (H)
  virtual Tensor sign() const = 0;                          // (H) of the determinant
  virtual std::shared_ptr<const DeviceEngineFactor> heads(int64_t first, int64_t count) const = 0;
};

// Factors R A C by the elimination that is given. values (nnz, H).
std::shared_ptr<const DeviceEngineFactor> eliminated(std::shared_ptr<const Elimination> elimination,
                                                     const Tensor& values);

class DeviceFactor {
 public:
  // From values (nnz, H), float64. `make` is given those of R A C and may have no factors for them.
  using Make = std::function<std::shared_ptr<const DeviceEngineFactor>(const Tensor& scaled)>;
  DeviceFactor(const DevicePattern& A, const Tensor& values, bool symmetric, const Make& make);

  int64_t n() const { return scales_.rows.size(0); }
  int64_t heads() const { return scales_.rows.size(1); }
  const char* engine() const { return engine_->engine(); }
  const Tensor& norm(bool t) const { return t ? norm_t_ : norm_; }  // (H): ‖A‖∞ or ‖Aᵀ‖∞
  // (H): the backward error of a trial solve, or ∞ for factors that are none: a pivot lost, or of the wrong sign, or a
  // matrix that was to be symmetric and is not. NaN is as bad.
  const Tensor& error() const { return error_; }

  Tensor solve(const Tensor& b, bool t) const;  // (n, H, k)
  Tensor log_abs_det() const;                   // (H)
  Tensor sign() const { return engine_->sign(); }
  DeviceFactor narrow(int64_t first, int64_t count) const;  // some of the heads

 private:
  Tensor trial(const DevicePattern& A, const Tensor& values, const Tensor& scaled) const;

  DeviceScales scales_;
  Tensor norm_, norm_t_, error_;
  std::shared_ptr<const DeviceEngineFactor> engine_;
};

class DeviceHead final : public FactoredMatrix {
 public:
  DeviceHead(std::shared_ptr<const DeviceFactor> all, int64_t head) : all_(std::move(all)), head_(head) {}
  int64_t n() const override { return all_->n(); }
  std::string engine() const override { return all_->engine(); }
  const std::shared_ptr<const DeviceFactor>& all() const { return all_; }
  int64_t head() const { return head_; }

 private:
  std::shared_ptr<const DeviceFactor> all_;
  int64_t head_;
};

// Whether these factors are on a device. Null ones, of a matrix without rows, are nowhere.
bool are_on_device(const Objects<FactoredMatrix>& factors);

// f(factor, first, count) for heads first … first + count - 1 of the factors, for as many heads at once as were
// factored together and are in order still; its results one after the other along `dim`.
Tensor for_heads(const Objects<FactoredMatrix>& factors, int64_t dim,
                 const std::function<Tensor(const DeviceFactor& factor, int64_t first, int64_t count)>& f);

// A factor a head of values (nnz, H), float64, on the device of the pattern. engine: "device" or "cudss".
Objects<FactoredMatrix> factorize_on_device(const std::shared_ptr<const PatternAnalysis>& pattern, const Tensor& values,
                                            FactorKind kind, const std::string& engine);

}  // namespace gossamer
