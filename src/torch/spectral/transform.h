// SPDX-License-Identifier: BSD-3-Clause
// Class: SpectralTransform, what Lanczos multiplies with. For A x = λ M x it is T with
//
//   T = (A - σM)⁻¹ M,  T x = θ x,  θ = 1 / (λ - σ)        or, without σ,        T = M⁻¹ A,  θ = λ
//
// which is self-adjoint in the inner product xᵀ M y. Vectors are rows here, (c, n), contiguous, in float64; their sums
// are those of kernels/basis.h, the same for every number of threads, which the sums and products of torch are not.
#pragma once
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gossamer/kernels/basis.h>

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "core/csr.h"
#include "core/launch.h"
#include "solve/factor.h"

namespace gossamer {

// A random row (1, n) to begin an iteration with: normal numbers, the same ones in every run.
inline Tensor random_row(int64_t n, uint64_t seed) {
  return at::randn({1, n}, at::detail::createCPUGenerator(seed), at::TensorOptions().dtype(at::kDouble));
}

// u_i · v_i, as (c, 1).
inline Tensor row_products(const Tensor& u, const Tensor& v) {
  const int64_t n = u.size(1);
  const Tensor products = at::empty({u.size(0), 1}, u.options());
  for (int64_t i = 0; i < u.size(0); ++i)
    kernels::coefficients(torch_pool(), 1, n, ptr<double>(u) + i * n, ptr<double>(v) + i * n,
                          mutable_ptr<double>(products) + i);
  return products;
}

inline double norm_of_row(const Tensor& w) {
  return std::sqrt(row_products(w, w).item<double>());
}

// w_i - Σ_j (dual_j · w_i) basis_j.
inline Tensor without_components(const Tensor& w, const Tensor& dual, const Tensor& basis) {
  const int64_t n = w.size(1), k = basis.size(0);
  const Tensor rest = w.clone(at::MemoryFormat::Contiguous);
  std::vector<double> h(static_cast<size_t>(k));
  for (int64_t i = 0; i < w.size(0); ++i) {
    double* row = mutable_ptr<double>(rest) + i * n;
    kernels::coefficients(torch_pool(), k, n, ptr<double>(dual), row, h.data());
    kernels::subtract(torch_pool(), k, n, ptr<double>(basis), h.data(), row);
  }
  return rest;
}

class SpectralTransform {
 public:
  // m: undefined for the identity. analysis: null if nothing is to be factored, as for small matrices, `dense`.
  SpectralTransform(std::vector<Tensor> pattern, std::vector<SymInt> shape, Tensor a, Tensor m,
                    std::optional<double> sigma, const PatternAnalysis* analysis, bool dense);

  int64_t n() const { return n_; }
  bool dense() const { return dense_; }
  bool has_mass() const { return m_.defined(); }
  std::optional<double> sigma() const { return sigma_; }  // as it was asked for
  double shift() const { return shift_; }                 // what was factored: σ, or a number beside it
  double size() const { return size_; }  // ‖A‖ / ‖M‖ by rows, of which rounding errors are a small part

  Tensor times_A(const Tensor& V) const { return times(a_, V); }
  Tensor mass(const Tensor& V) const { return has_mass() ? times(m_, V) : V; }
  Tensor solve(const Tensor& B) const;  // (A - σM)⁻¹ B or M⁻¹ B: what stands before M or A in T
  Tensor apply(const Tensor& V, const Tensor& MV) const { return solve(sigma_ ? MV : times_A(V)); }
  double theta(double value) const { return sigma_ ? 1 / (value - shift_) : value; }
  double value(double theta) const { return sigma_ ? shift_ + 1 / theta : theta; }

  // A and M as they are, for small matrices.
  Tensor dense_A() const { return dense_of(a_); }
  Tensor dense_M() const { return dense_of(m_); }

 private:
  Tensor times(const Tensor& values, const Tensor& V) const;
  Tensor dense_of(const Tensor& values) const;
  void factor_mass(const PatternAnalysis& analysis);
  void factor_shifted(const PatternAnalysis& analysis);
  bool nearly_singular() const;

  int64_t n_;
  std::vector<Tensor> pattern_;
  std::vector<SymInt> shape_;
  Tensor a_, m_;
  std::optional<double> sigma_;
  double shift_ = 0;  // σ, or a number beside it if σ is an eigenvalue
  double size_ = 0;
  bool dense_;
  std::shared_ptr<const ScaledFactor> factor_;
};

}  // namespace gossamer
