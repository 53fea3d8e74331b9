// SPDX-License-Identifier: BSD-3-Clause
#include "solve/inverse/blocks.h"

#include <ATen/ATen.h>
#include <gossamer/linalg.h>

namespace gossamer {
namespace {

const ScaledFactor& scaled(const std::shared_ptr<const FactoredMatrix>& factor) {
  return dynamic_cast<const ScaledFactor&>(*factor);
}

// r_i r_j for each entry (i, j) of the pattern.
Tensor scales_on(TensorList pattern, const ScaledFactor& factor) {
  const Tensor r = at::tensor(factor.row_scale(), at::kDouble);
  return r.index_select(0, ops::row_indices(pattern[0], pattern[1])).mul_(r.index_select(0, pattern[1].to(at::kLong)));
}

// result[:, h] = compute(factor of head h, scales, h), in the type of `like`.
template <class Compute>
Tensor of_each_head(const Objects<FactoredMatrix>& factors, TensorList pattern, const Tensor& like,
                    const Compute& compute) {
  std::vector<Tensor> heads;
  for (size_t h = 0; h < factors.size(); ++h) {
    const ScaledFactor& factor = scaled(factors[h]);
    heads.push_back(compute(factor, scales_on(pattern, factor), static_cast<int64_t>(h)));
  }
  return at::stack(heads, /*dim=*/1).reshape(like.sizes()).to(like.options());
}

}  // namespace

Objects<FactoredMatrix> factors_with_blocks(const Tensor& factor, TensorList pattern, const Tensor& values,
                                            SymIntArrayRef shape) {
  if (!values.is_cpu() || values.numel() == 0) return {};
  auto factors = objects_of<FactoredMatrix>(factor);
  bool ours = true;
  for (const auto& each : factors) {
    const auto* here = dynamic_cast<const ScaledFactor*>(each.get());
    if (!here || !here->is_cholesky()) return {};
    TORCH_CHECK_VALUE(here->n() == shape[0] && (!here->blocks() || here->blocks()->entries() == values.size(0)),
                      "factor_inverse: the factor is of another matrix, with ", here->n(), " rows");
    ours = ours && here->blocks();
  }
  if (ours) return factors;
  return objects_of<FactoredMatrix>(ops::factorize(ops::analyze(pattern, shape), values, "cholesky", "gossamer"));
}

Tensor inverse_by_blocks(const Objects<FactoredMatrix>& factors, TensorList pattern, const Tensor& values) {
  return of_each_head(factors, pattern, values, [&](const ScaledFactor& factor, const Tensor& scales, int64_t) {
    const Tensor Z = at::empty_like(scales);
    factor.blocks()->inverse(Z.mutable_data_ptr<double>());
    return Z.mul_(scales);
  });
}

Tensor tangent_by_blocks(const Objects<FactoredMatrix>& factors, TensorList pattern, SymIntArrayRef shape,
                         const Tensor& M, bool t) {
  const Tensor mirrored = unpack("inverse_tangent", pattern, shape, /*t=*/true).perm.to(at::kLong);
  const Tensor directions = M.to(at::kDouble).reshape({M.size(0), -1});
  return of_each_head(factors, pattern, M, [&](const ScaledFactor& factor, const Tensor& scales, int64_t h) {
    const Tensor G = directions.select(1, h).mul(scales), turned = G.index_select(0, mirrored);
    const auto tangent = [&](const Tensor& direction, bool skew) {
      const Tensor X = at::empty_like(direction);
      factor.blocks()->tangent(direction.const_data_ptr<double>(), skew, X.mutable_data_ptr<double>());
      return X;
    };
    Tensor X = tangent(G.add(turned).mul_(0.5), /*skew=*/false);
    const Tensor skew = (t ? turned.sub(G) : G.sub(turned)).mul_(0.5);
    if (skew.any().item<bool>()) X.add_(tangent(skew, /*skew=*/true));  // a linear map: of nothing it makes nothing
    return X.mul_(scales);
  });
}

}  // namespace gossamer
