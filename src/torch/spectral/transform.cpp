// SPDX-License-Identifier: BSD-3-Clause
// Ops: `spectral_transform`, and `symmetric_part`, by which a matrix comes to it: the values must be symmetric up to
// rounding, and the gradient is.
#include "spectral/transform.h"

#include <ATen/ATen.h>
#include <gossamer/products.h>
#include <gossamer/spectral.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/batch.h"
#include "core/differentiable.h"
#include "core/op.h"
#include "solve/solve.h"

namespace gossamer {

SpectralTransform::SpectralTransform(std::vector<Tensor> pattern, std::vector<SymInt> shape, Tensor a, Tensor m,
                                     std::optional<double> sigma, const PatternAnalysis* analysis, bool dense)
    : n_(shape[0].expect_int()),
      pattern_(std::move(pattern)),
      shape_(std::move(shape)),
      a_(std::move(a)),
      m_(std::move(m)),
      sigma_(sigma),
      dense_(dense) {
  const auto largest_row = [this](const Tensor& values) {
    return times(values.abs(), at::ones({1, n_}, values.options())).max().item<double>();
  };
  size_ = largest_row(a_) / (has_mass() ? largest_row(m_) : 1);
  if (!analysis) return;
  if (has_mass()) factor_mass(*analysis);  // also with sigma: M must be definite
  if (sigma_) factor_shifted(*analysis);
}

Tensor SpectralTransform::times(const Tensor& values, const Tensor& V) const {
  return ops::spmm(pattern_, values, V.t(), shape_, /*t=*/false).t().contiguous();
}

Tensor SpectralTransform::dense_of(const Tensor& values) const {
  return values.defined() ? ops::to_dense(pattern_[0], pattern_[1], values, {n_, n_}) : at::eye(n_, a_.options());
}

namespace {

std::shared_ptr<const ScaledFactor> factor_of(const PatternAnalysis& analysis, const Tensor& values, FactorKind kind) {
  return std::make_shared<const ScaledFactor>(analysis, analysis.by_columns(ptr<double>(values), 1), kind, "auto");
}

// The identity, on a pattern that has its entries.
Tensor unit_values(const std::vector<Tensor>& pattern) {
  return at::eq(ops::row_indices(pattern[0], pattern[1]), pattern[1]).to(at::kDouble);
}

}  // namespace

void SpectralTransform::factor_mass(const PatternAnalysis& analysis) {
  try {
    factor_ = factor_of(analysis, m_, FactorKind::cholesky);
    return;
  } catch (const c10::ValueError&) {
  } catch (const SingularMatrixError&) {
  }
  TORCH_CHECK_VALUE(false, "eigsh: M must be positive definite");
}

// A - σM or, if that is singular to working precision, A - (σ - δ)M: it has the same vectors. The values nearest to
// σ - δ need not be those nearest to σ, which `eigenpairs` sees to.
void SpectralTransform::factor_shifted(const PatternAnalysis& analysis) {
  const Tensor mass = has_mass() ? m_ : unit_values(pattern_);
  TORCH_CHECK_VALUE(has_mass() || mass.sum().item<double>() == static_cast<double>(n_),
                    "eigsh: with sigma and without M the pattern must have the whole diagonal");
  const auto factor_at = [&](double shift) {
    shift_ = shift;
    factor_ = factor_of(analysis, a_.sub(mass, shift).contiguous(), FactorKind::automatic);
  };
  try {
    factor_at(*sigma_);
    if (!nearly_singular()) return;
  } catch (const SingularMatrixError&) {
  }
  factor_at(*sigma_ - 1e-6 * (size_ > 0 ? size_ : 1.0));
}

// Whether σ is so near to some values that the others drown in rounding errors of (A - σM)⁻¹. Three steps of inverse
// iteration tell the distance from σ to the nearest value; if it is small, but more than a rounding error, the same
// with several vectors tells whether all are near that will be asked for: then σ is a good shift.
bool SpectralTransform::nearly_singular() const {
  const int64_t several = std::min<int64_t>(n_, 12);
  const auto growth = [this](Tensor V) {  // of the slowest of the rows
    double slowest = 0;
    for (int step = 0; step < 3; ++step) {
      V = solve(mass(std::get<0>(at::linalg_qr(V.t())).t().contiguous()));
      if (!V.isfinite().all().item<bool>()) return std::numeric_limits<double>::infinity();
      slowest = at::linalg_svdvals(V).min().item<double>();
    }
    return slowest;
  };
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < several; ++i) rows.push_back(random_row(n_, static_cast<uint64_t>(1 + i)));
  const double one = growth(rows[0]);
  if (one * size_ < 1e10) return false;
  return !(one * size_ < 1e14) || !(growth(at::cat(rows)) > 1e-4 * one);
}

Tensor SpectralTransform::solve(const Tensor& B) const {
  if (!factor_) return B;
  const Tensor x = B.clone(at::MemoryFormat::Contiguous);
  factor_->solve(x.mutable_data_ptr<double>(), x.size(0), /*t=*/false);  // the matrix is symmetric
  return x;
}

namespace {

Tensor transform(const ops::OptionalTensor& analysis, TensorList pattern, const Tensor& a, const ops::OptionalTensor& m,
                 SymIntArrayRef shape, std::optional<double> sigma, bool dense) {
  check_square("eigsh", shape);
  const PatternTensors P = unpack("eigsh", pattern, shape, /*t=*/false);
  for (const Tensor& values : {a, m.value_or(a)}) {
    check_dense("eigsh", "values", values, P, P.nnz(), "entries");
    TORCH_CHECK_VALUE(values.dim() >= 1 && values.sizes() == a.sizes() && values.scalar_type() == at::kDouble,
                      "spectral_transform: values must be (nnz,) or (nnz, batch) in float64, not ", shape_text(values),
                      " in ", values.scalar_type());
  }
  const bool factored = !dense && (sigma || m);
  TORCH_CHECK_VALUE(!factored || analysis, "spectral_transform: the analysis of the pattern is missing");
  const auto found = factored ? object_of<PatternAnalysis>(*analysis) : nullptr;
  TORCH_CHECK_VALUE(!found || (found->n() == shape[0] && found->nnz() == a.size(0)),
                    "spectral_transform: the analysis is of another pattern");
  const auto size = a.sizes().slice(1);
  const auto of_each = [&](const Tensor& values) { return values.reshape({a.size(0), -1}).t().contiguous(); };
  const Tensor A = of_each(a), M = m ? of_each(*m) : Tensor();
  Objects<SpectralTransform> made;
  for (int64_t h = 0; h < A.size(0); ++h)
    made.push_back(std::make_shared<const SpectralTransform>(pattern.vec(), shape.vec(), A[h],
                                                             M.defined() ? M[h] : Tensor(), sigma, found.get(), dense));
  return handle_of<SpectralTransform>(std::move(made), size);
}

Tensor mirrored(const Tensor& values, const Tensor& perm) {
  return values.add(values.index_select(0, perm)).mul(0.5);
}

Tensor symmetric(TensorList pattern, const Tensor& values, SymIntArrayRef shape, c10::string_view name) {
  check_square("eigsh", shape);
  const PatternTensors P = unpack("eigsh", pattern, shape, /*t=*/true);
  check_dense("eigsh", "values", values, P, P.nnz(), "entries");
  TORCH_CHECK_VALUE(values.dim() == 1, "eigsh: ", name, " must be one matrix, not ", shape_text(values),
                    " values for several");
  TORCH_CHECK_VALUE(at::equal(P.indices, pattern[1]) && at::equal(P.indptr, pattern[0]), "eigsh: ", name,
                    " must be symmetric, and so must its pattern be: an entry has no mirror image ((A + A.T) / 2 has)");
  if (values.numel() == 0) return values.clone();
  const Tensor largest = values.abs().max();
  TORCH_CHECK_VALUE(largest.isfinite().item<bool>(), "eigsh: ", name, " has an entry that is not finite");
  const double size = largest.item<double>();  // beyond these, squares of norms leave the range of float64
  TORCH_CHECK_VALUE(size == 0 || (size > 1e-100 && size < 1e100), "eigsh: the largest entry of ", name, " is ", size,
                    ", of which squares are not accurate in float64: scale the matrix");
  const double rounding = values.scalar_type() == at::kDouble ? 1e-10 : 1e-5;
  const double off = values.sub(values.index_select(0, P.perm)).abs().max().item<double>();
  TORCH_CHECK_VALUE(off <= rounding * size, "eigsh: ", name,
                    " must be symmetric, but an entry and its mirror image differ by ", off);
  return mirrored(values, P.perm);
}

Tensor autograd_symmetric(TensorList pattern, const Tensor& values, SymIntArrayRef shape, c10::string_view name) {
  const std::vector<Tensor> P = pattern.vec();
  TORCH_CHECK_VALUE(P.size() >= 5, "symmetric_part: the pattern must bring its transpose");
  const Tensor perm = P[4];
  return differentiable(
      "symmetric_part", {values}, [&](const variable_list& in) { return ops::symmetric_part(P, in[0], shape, name); },
      [perm](const Tensor& G, const variable_list&, const Tensor&, const Wanted&) {
        return variable_list{mirrored(G, perm)};
      },
      [perm](const variable_list&, const variable_list& tangents, const Tensor&) {
        return mirrored(tangents[0], perm);
      },
      /*keep_output=*/false);
}

Tensor batched_symmetric(TensorList pattern, const Tensor& values, SymIntArrayRef shape, c10::string_view name) {
  return one_by_one("eigsh", pattern, {values}, [&](const variable_list& in) {
    return variable_list{ops::symmetric_part(pattern, in[0], shape, name)};
  })[0];
}

// A batch of handles must be one handle of all its objects, for these live as long as it does: a batch is more heads.
Tensor batched_transform(const ops::OptionalTensor& analysis, TensorList pattern, const Tensor& a,
                         const ops::OptionalTensor& m, SymIntArrayRef shape, std::optional<double> sigma, bool dense) {
  const Batch batch("eigsh", pattern, {a, m.value_or(Tensor())});
  const auto mass = m ? ops::OptionalTensor(batch.at(*m, 1)) : std::nullopt;
  return batch.wrap(ops::spectral_transform(analysis, pattern, batch.at(a, 1), mass, shape, sigma, dense), 0);
}

const Op<decltype(ops::symmetric_part)> symmetric_op{{
    .schema = "symmetric_part(Tensor[] pattern, Tensor values, SymInt[] shape, str name) -> Tensor",
    .forward = symmetric,
    .autograd = autograd_symmetric,
    .batched = batched_symmetric,
    .meta = false,
}};
const Op<decltype(ops::spectral_transform)> transform_op{{
    .schema = "spectral_transform(Tensor? analysis, Tensor[] pattern, Tensor a, Tensor? m, SymInt[] shape, "
              "float? sigma, bool dense) -> Tensor",
    .forward = transform,
    .batched = batched_transform,
    .constant = true,
    .meta = false,
}};

}  // namespace

Tensor ops::symmetric_part(TensorList pattern, const Tensor& values, SymIntArrayRef shape, c10::string_view name) {
  return symmetric_op(pattern, values, shape, name);
}

Tensor ops::spectral_transform(const OptionalTensor& analysis, TensorList pattern, const Tensor& a,
                               const OptionalTensor& m, SymIntArrayRef shape, std::optional<double> sigma, bool dense) {
  return transform_op(analysis, pattern, a, m, shape, sigma, dense);
}

}  // namespace gossamer
