// SPDX-License-Identifier: BSD-3-Clause
// Patterns from triplets and the check of patterns from elsewhere. Host work, done once per pattern.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gossamer/kernels/coo.h>

#include <limits>

#include "core/csr.h"
#include "core/launch.h"
#include "core/op.h"
#include "structure/device.h"

namespace gossamer {
namespace {

void check_shape(const char* op, at::IntArrayRef shape) {
  TORCH_CHECK_VALUE(shape.size() == 2, op, ": shape must be (rows, cols), not ", shape.size(), " numbers");
  TORCH_CHECK_VALUE(shape[0] >= 0 && shape[1] >= 0, op, ": shape (", shape[0], ", ", shape[1], ") is negative");
}

// The coordinates of one axis as int64 on the host, each in [0, size).
Tensor coordinates(const char* name, const Tensor& given, int64_t size) {
  TORCH_CHECK_TYPE(at::isIntegralType(given.scalar_type(), /*includeBool=*/false), "from_coo: ", name,
                   " must be integers, not ", given.scalar_type());
  TORCH_CHECK_VALUE(given.dim() == 1, "from_coo: ", name, " must have one dimension, not shape ", shape_text(given));
  const Tensor on_host = given.to(at::kCPU, at::kLong).contiguous();
  const int64_t* at = ptr<int64_t>(on_host);
  const bool fit = kernels::coo_in_range(torch_pool(), on_host.numel(), at, size);
  for (int64_t k = 0; !fit && k < on_host.numel(); ++k)
    TORCH_CHECK_VALUE(at[k] >= 0 && at[k] < size, "from_coo: ", name, "[", k, "] is ", at[k], ", outside 0 … ",
                      size - 1);
  return on_host;
}

std::tuple<Tensor, Tensor, Tensor> coo(const Tensor& rows, const Tensor& cols, at::IntArrayRef shape) {
  check_shape("from_coo", shape);
  const int64_t m = shape[0];
  const Tensor r = coordinates("rows", rows, m), c = coordinates("cols", cols, shape[1]);
  const int64_t n = r.numel();
  TORCH_CHECK_VALUE(c.numel() == n, "from_coo: rows has ", n, " entries but cols has ", c.numel());
  const auto host = at::TensorOptions().dtype(at::kLong);
  const Tensor starts = at::empty({m + 1}, host), order = at::empty({n}, host), slot = at::empty({n}, host);
  const int64_t nnz = kernels::coo_sort(torch_pool(), m, n, ptr<int64_t>(r), ptr<int64_t>(c),
                                        mutable_ptr<int64_t>(starts), mutable_ptr<int64_t>(order));
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  const auto type = m < limit && shape[1] < limit && nnz < limit ? at::kInt : at::kLong;
  const Tensor indptr = at::empty({m + 1}, host.dtype(type)), indices = at::empty({nnz}, host.dtype(type));
  with_index_type<void>(type, [&]<class, class I> {
    kernels::coo_compress(m, ptr<int64_t>(c), ptr<int64_t>(starts), ptr<int64_t>(order), mutable_ptr<I>(indptr),
                          mutable_ptr<I>(indices), mutable_ptr<int64_t>(slot));
  });
  return {indptr.to(rows.device()), indices.to(rows.device()), slot.to(rows.device())};
}

// What the host would refuse, it does: it has the words for it.
std::tuple<Tensor, Tensor, Tensor> coo_on_device(const Tensor& rows, const Tensor& cols, at::IntArrayRef shape) {
  check_shape("from_coo", shape);
  const auto usable = [&](const Tensor& k) {
    return at::isIntegralType(k.scalar_type(), /*includeBool=*/false) && k.dim() == 1 && k.device() == rows.device();
  };
  if (!usable(rows) || !usable(cols) || rows.size(0) != cols.size(0) || !device_patterns::has_keys(shape))
    return coo(rows, cols, shape);
  const auto found = device_patterns::coo(rows, cols, shape);
  return std::get<0>(found).defined() ? found : coo(rows, cols, shape);
}

void check(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape, bool simple) {
  check_shape("Pattern", shape);
  const PatternTensors A = unpack("Pattern", {indptr.cpu(), indices.cpu()}, c10::fromIntArrayRefSlow(shape), false);
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    TORCH_CHECK_VALUE(shape[1] - 1 <= std::numeric_limits<I>::max(), "Pattern: ", shape[1],
                      " columns do not fit int32 indices; use int64");
    const std::string broken = check_structure(A.view<I>(), simple);
    TORCH_CHECK_VALUE(broken.empty(), "Pattern: ", broken);
  });
}

void check_on_device(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape, bool simple) {
  check_shape("Pattern", shape);
  unpack("Pattern", {indptr, indices}, c10::fromIntArrayRefSlow(shape), /*t=*/false);
  const bool fits = indptr.scalar_type() == at::kLong || shape[1] - 1 <= std::numeric_limits<int32_t>::max();
  if (!fits || !device_patterns::is_pattern(indptr, indices, shape, simple)) check(indptr, indices, shape, simple);
}

const Op<decltype(ops::coo)> coo_op{{
    .schema = "coo(Tensor rows, Tensor cols, int[] shape) -> (Tensor indptr, Tensor indices, Tensor slot)",
    .forward = coo,
    .on_device = coo_on_device,
    .meta = false,
}};
const Op<decltype(ops::check_pattern)> check_op{{
    .schema = "check_pattern(Tensor indptr, Tensor indices, int[] shape, bool simple=True) -> ()",
    .forward = check,
    .on_device = check_on_device,
    .meta = false,
}};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> ops::coo(const Tensor& rows, const Tensor& cols, at::IntArrayRef shape) {
  return coo_op(rows, cols, shape);
}

void ops::check_pattern(const Tensor& indptr, const Tensor& indices, at::IntArrayRef shape, bool simple) {
  check_op(indptr, indices, shape, simple);
}

bool ops::has_parallel_entries(const Tensor& indptr, const Tensor& indices) {
  if (indices.size(0) < 2) return false;
  // An entry repeats the one before it if it has the same column and does not begin a row. The first entry, and the
  // place after the last, begin one too; nothing repeats there.
  const Tensor nothing = at::zeros({1}, indices.options().dtype(at::kBool));
  const Tensor repeats = at::cat({nothing, indices.slice(0, 1).eq(indices.slice(0, 0, -1)), nothing});
  return repeats.index_fill(0, indptr.to(at::kLong), false).any().item<bool>();
}

static const Composites composites =
    Composites().def("has_parallel_entries(Tensor indptr, Tensor indices) -> bool", ops::has_parallel_entries);

}  // namespace gossamer
