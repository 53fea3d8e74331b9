// SPDX-License-Identifier: BSD-3-Clause
// The checks that both kinds of graph attention share, and `head_scores`, the parts of a GAT score.
#include <gossamer/attention.h>

#include <ATen/ATen.h>

#include "attention/attention.h"
#include "core/op.h"

namespace gossamer {

void check_attention(const char* op, const AttentionSettings& settings, const Tensor& x_src) {
  const PatternTensors A = unpack(op, settings.pattern, settings.shape, /*t=*/false);
  TORCH_CHECK_VALUE(x_src.dim() == 3, op, ": x_src must be (n_src, H, d), not ", shape_text(x_src));
  check_dense(op, "x_src", x_src, A, A.cols, "columns");
  TORCH_CHECK_VALUE(settings.dropout >= 0 && settings.dropout <= 1, op, ": dropout must be in [0, 1], not ",
                    settings.dropout);
  TORCH_CHECK_VALUE(settings.dropout == 0 || settings.seed, op, ": dropout needs a seed");
  if (!settings.seed) return;
  TORCH_CHECK_VALUE(settings.seed->dim() == 0 && settings.seed->device() == x_src.device(), op,
                    ": the seed must be a 0-dim tensor on ", x_src.device(), ", where x_src is");
  TORCH_CHECK_TYPE(settings.seed->scalar_type() == at::kLong, op, ": the seed must be int64, not ",
                   settings.seed->scalar_type());
  if (settings.keys) check_keys(op, *settings.keys, settings.pattern[1]);
}

void check_keys(const char* op, const Tensor& keys, const Tensor& indices) {
  TORCH_CHECK_TYPE(keys.scalar_type() == at::kLong, op, ": keys must be int64, not ", keys.scalar_type());
  TORCH_CHECK_VALUE(keys.dim() == 1 && keys.sym_size(0) == indices.sym_size(0) && keys.is_contiguous() &&
                        keys.device() == indices.device(),
                    op, ": keys must be a number for each of the ", indices.sym_size(0), " entries, in one piece on ",
                    indices.device(), ", not ", shape_text(keys), " on ", keys.device());
}

void check_input(const char* op, const char* name, const Tensor& input, const Tensor& x_src,
                 const std::vector<SymInt>& size, const char* wanted) {
  check_same_dtype(op, name, input, "x_src", x_src);
  TORCH_CHECK_VALUE(input.device() == x_src.device(), op, ": ", name, " is on ", input.device(), " but x_src is on ",
                    x_src.device());
  TORCH_CHECK_VALUE(input.sym_sizes() == SymIntArrayRef(size), op, ": ", name, " must be ", wanted, " = ",
                    SymIntArrayRef(size), ", not ", shape_text(input));
}

void check_outputs(const char* op, const AttentionSettings& settings, const Tensor& x_src, const Tensor& G,
                   const Tensor& Z, const Tensor& lse) {
  const SymInt n = settings.shape[0], H = x_src.sym_size(1);
  check_input(op, "G", G, x_src, {n, H, x_src.sym_size(2)}, "(n_dst, H, d)");
  check_input(op, "Z", Z, x_src, {n, H, x_src.sym_size(2)}, "(n_dst, H, d)");
  TORCH_CHECK_TYPE(lse.scalar_type() == sum_type(x_src), op, ": lse must be ", sum_type(x_src), ", not ",
                   lse.scalar_type());
  TORCH_CHECK_VALUE(lse.device() == x_src.device() && lse.dim() == 2 && lse.sym_size(0) == n && lse.sym_size(1) == H,
                    op, ": lse must be (n_dst, H) beside x_src, not ", shape_text(lse), " on ", lse.device());
}

Tensor ops::head_scores(const Tensor& X, const Tensor& a) {
  TORCH_CHECK_VALUE(X.dim() == 3 && a.dim() == 3 && X.sym_size(1) == a.sym_size(1) && X.sym_size(2) == a.sym_size(2),
                    "head_scores: X ", shape_text(X), " and a ", shape_text(a), " must be (n, H, d) and (k, H, d)");
  const SymInt H = a.sym_size(1), k = a.sym_size(0);
  const Tensor same_head = at::eye_symint(H, a.options()).view_symint({1, H, H, 1});
  const Tensor blocks = (a.unsqueeze(1) * same_head).reshape_symint({k * H, H * a.sym_size(2)});  // (k H, H d)
  // As a linear map, whose few rows lie in one piece each: torch then takes the gradient of a as Gᵀ X. The other layout
  // makes it Xᵀ G, which takes MKL ten times as long where G is this narrow.
  return at::linear(X.flatten(1), blocks).view_symint({-1, k, H});
}

static const Composites composites = Composites().def("head_scores(Tensor X, Tensor a) -> Tensor", ops::head_scores);

}  // namespace gossamer
