// SPDX-License-Identifier: BSD-3-Clause
// Front end: `expm_multiply`, exp(t A) b, by s steps of Taylor polynomials of degree m (Al-Mohy & Higham 2011), with
// the shift μ = trace A / n, which makes the norm smaller and is taken out again:
//
//   exp(t A) b = exp(t μ) (Σ_{k ≤ m} (t (A - μ I) / s)^k / k!)^s b
//
// m and s are those of the fewest products for which the rest of the series, with θ = |t| ‖A - μ I‖₁ / s, is a rounding
// error: θ^{m+1} / (m+1)! / (1 - θ / (m+2)) ≤ 2⁻⁵³. They are found from the values of A, not differentiated; what is
// differentiated is the polynomial, product by product.
#include <ATen/ATen.h>
#include <gossamer/least_squares.h>
#include <gossamer/products.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/csr.h"
#include "core/host.h"
#include "core/op.h"
#include "signals/signals.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "expm_multiply";

struct Taylor {
  int64_t degree = 1, steps = 1;
};

// The largest θ for which the degree is enough, by bisection on the logarithm of the bound.
double largest_theta(int64_t degree) {
  const double m = static_cast<double>(degree), rounding = -53 * std::log(2.0);
  double low = 0, high = m + 2;
  for (int step = 0; step < 60; ++step) {
    const double theta = (low + high) / 2;
    const double rest = (m + 1) * std::log(theta) - std::lgamma(m + 2) - std::log1p(-theta / (m + 2));
    (rest <= rounding ? low : high) = theta;
  }
  return low;
}

Taylor taylor_for(double norm) {
  constexpr int64_t most = 55;  // beyond, terms grow so large before they shrink that digits are lost
  Taylor best;
  double fewest = INFINITY;
  for (int64_t degree = 1; degree <= most; ++degree) {
    const double steps = std::max(1.0, std::ceil(norm / largest_theta(degree)));
    if (steps * static_cast<double>(degree) < fewest) {
      fewest = steps * static_cast<double>(degree);
      best = {degree, static_cast<int64_t>(steps)};
    }
  }
  constexpr double patience = 1e9;  // products
  TORCH_CHECK_VALUE(fewest < patience, op_name, ": t A has the norm ", norm, ", which would take ", fewest,
                    " products");
  return best;
}

struct Shift {
  double mu, norm;  // and ‖A - μ I‖₁
};

// One pass over the entries, on the host. Of complex values the shift is real.
Shift shift_of(TensorList pattern, const Tensor& values, SymIntArrayRef shape) {
  const int64_t n = shape[0].guard_int(__FILE__, __LINE__);
  if (n == 0) return {0, 0};
  const Tensor v = values.detach().cpu(), real = at::real(v).to(at::kDouble).contiguous();
  const Tensor size = v.is_complex() ? v.abs().to(at::kDouble).contiguous() : real;
  const Tensor indptr = pattern[0].cpu().contiguous(), indices = pattern[1].cpu().contiguous();
  host_pattern(op_name, {indptr, indices}, shape);
  std::vector<double> diagonal(n, 0.0), imaginary(n, 0.0), sum(n, 0.0);  // of the columns, |.| off the diagonal
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    const I *first = ptr<I>(indptr), *column = ptr<I>(indices);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t p = first[i]; p < first[i + 1]; ++p) {
        const double re = ptr<double>(real)[p], most = std::abs(ptr<double>(size)[p]);
        if (column[p] != i) {
          sum[column[p]] += most;
        } else {
          diagonal[i] += re;
          imaginary[i] += std::sqrt(std::max(0.0, most * most - re * re));
        }
      }
  });
  double mu = 0, norm = 0;
  for (const double d : diagonal) mu += d / static_cast<double>(n);
  for (int64_t j = 0; j < n; ++j) {
    const double column = sum[j] + std::hypot(diagonal[j] - mu, imaginary[j]);
    if (!(column <= norm)) norm = column;  // NaN shows
  }
  return {mu, norm};
}

}  // namespace

Tensor ops::expm_multiply(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape, double t) {
  const PatternTensors A = unpack(op_name, pattern, shape, /*t=*/false);
  TORCH_CHECK_VALUE(shape[0] == shape[1], op_name, ": the matrix must be square, not ", shape[0], " x ", shape[1]);
  TORCH_CHECK_VALUE(std::isfinite(t), op_name, ": t must be a finite number, not ", t);
  TORCH_CHECK_VALUE(values.dim() == 1, op_name, ": takes one matrix at a time, values (nnz,), not ",
                    shape_text(values));
  TORCH_CHECK_VALUE(values.sym_size(0) == A.nnz(), op_name, ": values has shape ", shape_text(values),
                    " but the pattern has ", A.nnz(), " entries");
  TORCH_CHECK_VALUE(b.dim() == 1 || b.dim() == 2, op_name, ": b must be (n,) or (n, k), not ", shape_text(b));
  TORCH_CHECK_VALUE(b.sym_size(0) == shape[0], op_name, ": b has ", b.sym_size(0), " rows but A has ", shape[0]);
  const auto [mu, norm] = shift_of(pattern, values, shape);
  TORCH_CHECK_VALUE(std::isfinite(norm), op_name, ": A has an entry that is not finite");
  const auto [degree, steps] = taylor_for(std::abs(t) * norm);
  const double h = t / static_cast<double>(steps);
  const Tensor scaled = values.mul(h);
  Tensor sum = b;
  for (int64_t step = 0; step < steps; ++step) {
    Tensor term = sum;  // saved for the derivative, so `sum` becomes another tensor first
    for (int64_t k = 1; k <= degree; ++k) {
      throw_if_interrupted();
      Tensor next = ops::spmm(pattern, scaled, term, shape, /*t=*/false);
      if (mu != 0) next = next.sub_(term, h * mu);
      term = k > 1 ? next.div_(static_cast<double>(k)) : next;
      sum = k > 1 ? sum.add_(term) : sum.add(term);
    }
    sum = sum.mul(std::exp(h * mu));
  }
  return sum;
}

static const Composites composites = Composites().def(
    "expm_multiply(Tensor[] pattern, Tensor values, Tensor b, SymInt[] shape, float t) -> Tensor", ops::expm_multiply);

Tensor linalg::expm_multiply(const SparseMatrix& A, const Tensor& b, double t) {
  const Pattern& P = A.pattern();
  return ops::expm_multiply(P.with_runs(P.tensors_for({A.values(), b})), A.values(), b, P.sym_shape(), t);
}

}  // namespace gossamer
