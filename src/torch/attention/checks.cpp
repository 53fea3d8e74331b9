// SPDX-License-Identifier: BSD-3-Clause
// What both kinds of graph attention need besides their kernels: the pattern of a graph, checks.
#include <gossamer/attention.h>

#include <ATen/ATen.h>
#include <gossamer/kernels/coo.h>
#include <torch/library.h>

#include "attention/attention.h"
#include "core/host.h"

namespace gossamer {
namespace {

// The edges in CSR order: coo_sort, without merging what is equal.
std::tuple<Tensor, Tensor, Tensor> graph(const Tensor& edge_index, at::IntArrayRef shape) {
  const KeptResults kept;
  TORCH_CHECK_VALUE(edge_index.dim() == 2 && edge_index.size(0) == 2, "graph_pattern: edge_index must be (2, E), not ",
                    shape_text(edge_index));
  TORCH_CHECK_TYPE(at::isIntegralType(edge_index.scalar_type(), /*includeBool=*/false),
                   "graph_pattern: edge_index must be integers, not ", edge_index.scalar_type());
  TORCH_CHECK_VALUE(shape.size() == 2 && shape[0] >= 0 && shape[1] >= 0,
                    "graph_pattern: shape must be (destinations, sources), not ", shape);
  const Tensor host = edge_index.to(at::kCPU, at::kLong).contiguous();
  const int64_t edges = host.size(1), *sources = ptr<int64_t>(host), *targets = sources + edges;
  for (int64_t k = 0; k < edges; ++k)
    TORCH_CHECK_VALUE(sources[k] >= 0 && sources[k] < shape[1] && targets[k] >= 0 && targets[k] < shape[0],
                      "graph_pattern: edge ", k, " goes from ", sources[k], " to ", targets[k], ", outside ", shape[1],
                      " sources and ", shape[0], " destinations");
  const Tensor starts = host_integers(shape[0] + 1), order = host_integers(edges);
  kernels::coo_sort(shape[0], edges, targets, sources, mutable_ptr<int64_t>(starts), mutable_ptr<int64_t>(order));
  const auto type = index_type(/*wide=*/false, {shape[0], shape[1], edges});
  const Tensor indices = host.select(0, 0).index_select(0, order);
  const auto device = edge_index.device();
  return {starts.to(device, type), indices.to(device, type), order.to(device)};
}

}  // namespace

variable_list contiguous(const variable_list& tensors) {
  variable_list all;
  for (const Tensor& t : tensors) all.push_back(t.defined() ? t.contiguous() : t);
  return all;
}

Tensor empty_for(const Tensor& t) {
  return at::empty_symint(t.sym_sizes(), t.options());
}

at::ScalarType sum_type(const Tensor& t) {
  return t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

void check_attention(const char* op, const Attention& how, const Tensor& x_src) {
  const PatternTensors A = unpack(op, how.pattern, how.shape, /*t=*/false);
  TORCH_CHECK_VALUE(x_src.dim() == 3, op, ": x_src must be (n_src, H, d), not ", shape_text(x_src));
  check_dense(op, "x_src", x_src, A, A.cols, "columns");
  TORCH_CHECK_VALUE(how.dropout >= 0 && how.dropout <= 1, op, ": dropout must be in [0, 1], not ", how.dropout);
  TORCH_CHECK_VALUE(how.dropout == 0 || how.seed, op, ": dropout needs a seed");
  if (!how.seed) return;
  TORCH_CHECK_VALUE(how.seed->dim() == 0 && (how.seed->is_cpu() || how.seed->is_meta()), op,
                    ": the seed must be a 0-dim tensor on the host");
  TORCH_CHECK_TYPE(how.seed->scalar_type() == at::kLong, op, ": the seed must be int64, not ", how.seed->scalar_type());
}

void check_beside(const char* op, const char* name, const Tensor& t, const Tensor& x_src,
                  const std::vector<SymInt>& size, const char* wanted) {
  check_same_dtype(op, name, t, "x_src", x_src);
  TORCH_CHECK_VALUE(t.device() == x_src.device(), op, ": ", name, " is on ", t.device(), " but x_src is on ",
                    x_src.device());
  TORCH_CHECK_VALUE(t.sym_sizes() == SymIntArrayRef(size), op, ": ", name, " must be ", wanted, " = ",
                    SymIntArrayRef(size), ", not ", shape_text(t));
}

std::tuple<Tensor, Tensor, Tensor> ops::graph(const Tensor& edge_index, at::IntArrayRef shape) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("gossamer::graph", "").typed<decltype(graph)>();
  return op.call(edge_index, shape);
}

Tensor ops::head_scores(const Tensor& X, const Tensor& a) {
  TORCH_CHECK_VALUE(X.dim() == 3 && a.dim() == 3 && X.sym_size(1) == a.sym_size(1) && X.sym_size(2) == a.sym_size(2),
                    "head_scores: X ", shape_text(X), " and a ", shape_text(a), " must be (n, H, d) and (k, H, d)");
  const SymInt H = a.sym_size(1), k = a.sym_size(0);
  const Tensor same_head = at::eye_symint(H, a.options()).view_symint({H, 1, 1, H});
  const Tensor blocks = (a.permute({1, 2, 0}).unsqueeze(-1) * same_head).reshape_symint({-1, k * H});  // (H d, k H)
  return X.flatten(1).matmul(blocks).view_symint({-1, k, H});
}

TORCH_LIBRARY_FRAGMENT(gossamer, m) {
  m.def("head_scores(Tensor X, Tensor a) -> Tensor", ops::head_scores);
  m.def("graph(Tensor edge_index, int[] shape) -> (Tensor indptr, Tensor indices, Tensor order)");
}
TORCH_LIBRARY_IMPL(gossamer, CompositeExplicitAutograd, m) {
  m.impl("graph", graph);
}

std::pair<Pattern, Tensor> graph_pattern(const Tensor& edge_index, Shape shape) {
  const auto [indptr, indices, order] = ops::graph(edge_index, shape);
  return {Pattern(indptr, indices, shape, /*check=*/false), order};
}

}  // namespace gossamer
