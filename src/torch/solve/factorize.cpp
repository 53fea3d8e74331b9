// SPDX-License-Identifier: BSD-3-Clause
// Ops: `analyze` a pattern, `factorize` the values on it, and `factor_engine`, which library did it. A factor has no
// derivative of its own: factor_solve and factor_logdet, which use it, are given the matrix as well.
#include <ATen/ATen.h>

#include "core/batch.h"
#include "core/csr.h"
#include "core/host.h"
#include "core/op.h"
#include "solve/device/device_factor.h"
#include "solve/factor.h"
#include "solve/solve.h"

namespace gossamer {
namespace {

// The pattern by columns, as the engines take it. What they find out about it later is kept in the same object.
Tensor analysis_of(TensorList pattern, SymIntArrayRef shape, std::shared_ptr<const DevicePattern> device) {
  host_pattern("factorize", pattern, shape);
  const PatternTensors T = unpack("factorize", pattern, shape, /*t=*/true);
  TORCH_CHECK_VALUE(T.indptr.size(0) <= INT32_MAX && T.indices.size(0) <= INT32_MAX,
                    "factorize: the engines take up to 2^31 rows and entries, not ", T.indptr.size(0) - 1, " and ",
                    T.indices.size(0));
  const auto int_vector = [](const Tensor& t) {
    const Tensor host = t.to(at::kInt).contiguous();
    return std::vector<int>(host.const_data_ptr<int>(), host.const_data_ptr<int>() + host.numel());
  };
  const Tensor perm = T.perm.to(at::kLong).contiguous();
  std::vector<int64_t> entries(perm.const_data_ptr<int64_t>(), perm.const_data_ptr<int64_t>() + perm.numel());
  const bool symmetric = at::equal(T.indptr, pattern[0]) && at::equal(T.indices, pattern[1]);
  const auto found =
      std::make_shared<const PatternAnalysis>(shape[0].expect_int(), int_vector(T.indptr), int_vector(T.indices),
                                              std::move(entries), symmetric, std::move(device));
  return handle_of<PatternAnalysis>({found}, {});
}

Tensor analyze(TensorList pattern, SymIntArrayRef shape) {
  check_square("factorize", shape);
  return analysis_of(pattern, shape, nullptr);
}

Tensor analyze_on_device(TensorList pattern, SymIntArrayRef shape) {
  check_square("factorize", shape);
  const KeptResults kept;
  const PatternTensors T = unpack("factorize", pattern, shape, /*t=*/true);
  const std::vector<Tensor> tensors = {pattern[0], pattern[1], T.indptr, T.indices, T.perm};
  return analysis_of(on_host(tensors), shape,
                     std::make_shared<const DevicePattern>(tensors, shape[0].guard_int(__FILE__, __LINE__)));
}

// There is one factor a head, so the handle has the shape of values without its first dimension. A matrix without rows
// has factors that are null.
template <class Make>
Tensor factor_of(const Tensor& analysis, const Tensor& values, const Make& make) {
  TORCH_CHECK_TYPE(values.is_floating_point(), "factorize: values must be float32, float64, bfloat16 or float16, not ",
                   values.scalar_type());
  const auto pattern = object_of<PatternAnalysis>(analysis);
  TORCH_CHECK_VALUE(values.dim() >= 1 && values.size(0) == pattern->nnz(), "factorize: values has shape ",
                    shape_text(values), " but the pattern has ", pattern->nnz(), " entries");
  const auto size = values.sizes().slice(1);
  const int64_t heads = c10::multiply_integers(size);
  const Tensor doubles = values.to(at::kDouble).reshape({values.size(0), heads}).contiguous();
  Objects<FactoredMatrix> factors(heads);
  if (pattern->n() > 0 && heads > 0) factors = make(pattern, doubles);
  return handle_of<FactoredMatrix>(std::move(factors), size);
}

Tensor factorize(const Tensor& analysis, const Tensor& values, c10::string_view kind, c10::string_view engine) {
  const FactorKind wanted = kind_named(std::string(kind));
  return factor_of(analysis, values, [&](const std::shared_ptr<const PatternAnalysis>& pattern, const Tensor& doubles) {
    const int64_t heads = doubles.size(1);
    Objects<FactoredMatrix> factors;
    for (int64_t h = 0; h < heads; ++h)
      factors.push_back(std::make_shared<const ScaledFactor>(
          *pattern, pattern->by_columns(doubles.const_data_ptr<double>() + h, heads), wanted, std::string(engine)));
    return factors;
  });
}

// On the device, unless an engine of the host is asked for, or the pattern was analysed on the host alone.
Tensor factorize_there(const Tensor& analysis, const Tensor& values, c10::string_view kind, c10::string_view engine) {
  const FactorKind wanted = kind_named(std::string(kind));
  const Tensor handle = on_host(analysis);
  const DevicePattern* A = object_of<PatternAnalysis>(handle)->device();
  const std::string there = A && A->device() == values.device() ? device_engine(std::string(engine)) : "";
  if (there.empty()) return factorize(handle, values.cpu(), kind, engine);
  return factor_of(handle, values, [&](const std::shared_ptr<const PatternAnalysis>& pattern, const Tensor& doubles) {
    return factorize_on_device(pattern, doubles, wanted, there);
  });
}

Tensor factorize_batched(const Tensor& analysis, const Tensor& values, c10::string_view kind, c10::string_view engine) {
  const Batch batch("factorize", {analysis}, {values});
  return batch.wrap(ops::factorize(analysis, batch.at(values, 1), kind, engine), 0);
}

// The engine that made the factor (of the first head).
std::string engine_of(const Tensor& factor) {
  const auto factors = objects_of<FactoredMatrix>(factor);
  return factors.empty() || !factors[0] ? "eigen" : factors[0]->engine();
}

// Handles live on the host, whatever the device of the matrix. Their fakes, in python/gossamer/_fakes.py, know that.
const Op<decltype(ops::analyze)> analyze_op{{
    .schema = "analyze(Tensor[] pattern, SymInt[] shape) -> Tensor",
    .forward = analyze,
    .on_device = analyze_on_device,
    .meta = false,
}};
const Op<decltype(ops::factorize)> factorize_op{{
    .schema = "factorize(Tensor analysis, Tensor values, str kind, str engine='auto') -> Tensor",
    .forward = factorize,
    .on_device = factorize_there,
    .batched = factorize_batched,
    .constant = true,
    .meta = false,
}};
const Op<decltype(ops::factor_engine)> engine_op{{
    .schema = "factor_engine(Tensor factor) -> str",
    .forward = engine_of,
    .meta = false,
}};

}  // namespace

Tensor ops::analyze(TensorList pattern, SymIntArrayRef shape) {
  return analyze_op(pattern, shape);
}

Tensor ops::factorize(const Tensor& analysis, const Tensor& values, c10::string_view kind, c10::string_view engine) {
  return factorize_op(analysis, values, kind, engine);
}

std::string ops::factor_engine(const Tensor& factor) {
  return engine_op(factor);
}

}  // namespace gossamer
