// SPDX-License-Identifier: BSD-3-Clause
// The pattern of a graph layer's edges, the features of its loops, and the normalisation of GCN. Integers and gathers:
// every derivative is torch's own, or that of the ops that are called.
#include <gossamer/edges.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gossamer/kernels/coo.h>

#include <atomic>

#include <gossamer/reduce.h>
#include "core/csr.h"
#include "core/host.h"
#include "core/launch.h"
#include "core/op.h"
#include "graphs/degrees.h"
#include "graphs/self_loops.h"
#include "structure/device.h"
#include "structure/scans.h"

namespace gossamer {
namespace {

void check_edge_index(const char* op, const Tensor& edge_index) {
  TORCH_CHECK_VALUE(edge_index.dim() == 2 && edge_index.size(0) == 2, op, ": edge_index must be (2, E), not ",
                    shape_text(edge_index));
  TORCH_CHECK_TYPE(at::isIntegralType(edge_index.scalar_type(), /*includeBool=*/false), op,
                   ": edge_index must be integers, not ", edge_index.scalar_type());
}

void check_graph(const Tensor& edge_index, at::IntArrayRef shape) {
  check_edge_index("graph_pattern", edge_index);
  TORCH_CHECK_VALUE(shape.size() == 2 && shape[0] >= 0 && shape[1] >= 0,
                    "graph_pattern: shape must be (destinations, sources), not ", shape);
}

// The edges in CSR order: coo_sort, without merging what is equal.
std::tuple<Tensor, Tensor, Tensor> graph(const Tensor& edge_index, at::IntArrayRef shape) {
  const KeptResults kept;
  check_graph(edge_index, shape);
  const Tensor host = edge_index.to(at::kCPU, at::kLong).contiguous();
  const int64_t edges = host.size(1), *sources = ptr<int64_t>(host), *targets = sources + edges;
  const bool fit = kernels::coo_in_range(torch_pool(), edges, sources, shape[1]) &&
                   kernels::coo_in_range(torch_pool(), edges, targets, shape[0]);
  for (int64_t k = 0; !fit && k < edges; ++k)
    TORCH_CHECK_VALUE(sources[k] >= 0 && sources[k] < shape[1] && targets[k] >= 0 && targets[k] < shape[0],
                      "graph_pattern: edge ", k, " goes from ", sources[k], " to ", targets[k], ", outside ", shape[1],
                      " sources and ", shape[0], " destinations");
  const Tensor starts = host_integers(shape[0] + 1), order = host_integers(edges);
  kernels::coo_sort(torch_pool(), shape[0], edges, targets, sources, mutable_ptr<int64_t>(starts),
                    mutable_ptr<int64_t>(order));
  const auto type = index_type(/*wide=*/false, {shape[0], shape[1], edges});
  const Tensor indices = host_integers(edges, type);
  with_index_type<void>(type, [&]<class, class I> {
    kernels::coo_columns(edges, sources, ptr<int64_t>(order), mutable_ptr<I>(indices));
  });
  const auto device = edge_index.device();
  return {starts.to(device, type), indices.to(device), order.to(device)};
}

std::tuple<Tensor, Tensor, Tensor> graph_on_device(const Tensor& edge_index, at::IntArrayRef shape) {
  const KeptResults kept;
  check_graph(edge_index, shape);
  if (!device_patterns::has_keys(shape)) return graph(edge_index, shape);
  const auto found = device_patterns::graph(edge_index, shape, /*checked=*/false);
  return std::get<0>(found).defined() ? found : graph(edge_index, shape);
}

const Op<decltype(ops::graph)> graph_op{{
    .schema = "graph(Tensor edge_index, int[] shape) -> (Tensor indptr, Tensor indices, Tensor order)",
    .forward = graph,
    .on_device = graph_on_device,
    .meta = false,
}};

// How many edges are not loops, or -1 if one is out of range, which is for `graph` to say. On a device this is the one
// number the host looks at.
int64_t count_others(const Tensor& all, const Tensor& is_loop, at::IntArrayRef shape) {
  using device_patterns::inside;
  const Tensor fit = inside(all.select(0, 0), shape[1]).logical_and(inside(all.select(0, 1), shape[0])).all();
  return at::where(fit, is_loop.logical_not().sum(), -1).item<int64_t>();
}

std::tuple<Tensor, Tensor, Tensor> with_self_loops(const Tensor& edge_index, at::IntArrayRef shape,
                                                   int64_t self_loops) {
  const KeptResults kept;
  check_edge_index("edges", edge_index);
  TORCH_CHECK_VALUE(shape.size() == 2, "edges: shape must be (destinations, sources), not ", shape.size(), " numbers");
  const SelfLoops kind = self_loops_of("edges", self_loops);
  if (kind == SelfLoops::none) return ops::graph(edge_index, shape);
  const int64_t given = edge_index.size(1), n = std::min(shape[0], shape[1]);
  const auto integers = at::TensorOptions().dtype(at::kLong).device(edge_index.device());
  const Tensor all = edge_index.to(at::kLong), nodes = at::arange(n, integers);
  const Tensor is_loop = all.select(0, 0).eq(all.select(0, 1));
  const int64_t count = count_others(all, is_loop, shape);
  if (count < 0) return ops::graph(edge_index, shape);
  const Tensor others = device_patterns::places(is_loop.logical_not(), count);
  Tensor loops = nodes + given;
  if (kind == SelfLoops::remaining) {
    const Tensor own = device_patterns::places(is_loop, given - count), at = all.select(0, 0).index_select(0, own);
    const Tensor last = at::full({n}, -1, integers).scatter_reduce(0, at, own, "amax");
    loops = at::where(last.ge(0), last, loops);
  }
  const Tensor with_loops = at::cat({all.index_select(1, others), at::stack({nodes, nodes})}, 1);
  const bool on_device = !all.is_cpu() && device_patterns::has_keys(shape);
  const auto [indptr, indices, order] =
      on_device ? device_patterns::graph(with_loops, shape, /*checked=*/true) : ops::graph(with_loops, shape);
  return {indptr, indices, at::cat({others, loops}).index_select(0, order)};
}

const Op<decltype(ops::edges)> edges_op{{
    .schema = "edges(Tensor edge_index, int[] shape, int self_loops) -> (Tensor indptr, Tensor indices, Tensor edge)",
    .forward = with_self_loops,
    .meta = false,
}};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> ops::graph(const Tensor& edge_index, at::IntArrayRef shape) {
  return graph_op(edge_index, shape);
}

std::tuple<Tensor, Tensor, Tensor> ops::edges(const Tensor& edge_index, at::IntArrayRef shape, int64_t self_loops) {
  return edges_op(edge_index, shape, self_loops);
}

Tensor ops::loop_features(const Tensor& edge_index, const Tensor& edge_attr, int64_t n, const std::string& reduce) {
  const std::string known = reduce == "add"                      ? "sum"
                            : reduce == "mul"                    ? "prod"
                            : reduce == "min" || reduce == "max" ? "a" + reduce
                                                                 : reduce;
  TORCH_CHECK_VALUE(known == "sum" || known == "mean" || known == "prod" || known == "amin" || known == "amax",
                    "loop_features: fill_value must be a number, a tensor, 'add', 'mean', 'mul', 'min' or 'max', not '",
                    reduce, "'");
  check_edge_index("loop_features", edge_index);
  TORCH_CHECK_VALUE(edge_attr.dim() >= 1 && edge_attr.sym_size(0) == edge_index.sym_size(1),
                    "loop_features: edge_attr must be (", edge_index.sym_size(1), ", …), not ", shape_text(edge_attr));
  // Loops that are there already go to a row of their own, n, which is dropped.
  const Tensor target = edge_index.select(0, 1), is_loop = edge_index.select(0, 0).eq(target);
  Tensor to = target.to(at::kLong).masked_fill(is_loop, n);
  for (int64_t k = 1; k < edge_attr.dim(); ++k) to = to.unsqueeze(-1);
  auto size = edge_attr.sym_sizes().vec();
  size[0] = n + 1;
  return at::zeros_symint(size, edge_attr.options())
      .scatter_reduce(0, to.expand_as(edge_attr), edge_attr, known, /*include_self=*/false)
      .narrow(0, 0, n);
}

Tensor ops::gcn_norm(TensorList pattern, const Tensor& weights, SymIntArrayRef shape) {
  return symmetric_norm(pattern, weights, shape, [](const Tensor& d) { return d; });
}

int64_t ops::checksum(const Tensor& integers) {
  const Tensor numbers = integers.to(at::kLong).contiguous();
  const int64_t* x = numbers.const_data_ptr<int64_t>();
  // Σ_k mix(x[k], k), modulo 2^64: in any order the same, and another number or another place changes a term.
  std::atomic<uint64_t> sum = 0;
  at::parallel_for(0, numbers.numel(), /*grain_size=*/1 << 16, [&](int64_t begin, int64_t end) {
    constexpr uint64_t a = 0x9e3779b97f4a7c15, b = 0xd6e8feb86659fd93;  // odd, with bits all over
    uint64_t part = 0;
    for (int64_t k = begin; k < end; ++k) {
      const uint64_t z = (static_cast<uint64_t>(x[k]) + static_cast<uint64_t>(k + 1) * a) * b;
      part += (z ^ (z >> 32)) * a;
    }
    sum += part;
  });
  return static_cast<int64_t>(sum.load());
}

static const Composites composites =
    Composites()
        .def("checksum(Tensor integers) -> int", ops::checksum)
        .def("loop_features(Tensor edge_index, Tensor edge_attr, int n, str reduce) -> Tensor", ops::loop_features)
        .def("gcn_norm(Tensor[] pattern, Tensor weights, SymInt[] shape) -> Tensor", ops::gcn_norm);

std::pair<Pattern, Tensor> graph_pattern(const Tensor& edge_index, Shape shape) {
  const auto [indptr, indices, order] = ops::graph(edge_index, shape);
  return {Pattern(indptr, indices, shape, /*check=*/false, Entries::unknown), order};
}

Edges edges(const Tensor& edge_index, Shape shape, SelfLoops loops) {
  const auto [indptr, indices, edge] = ops::edges(edge_index, shape, static_cast<int64_t>(loops));
  return {Pattern(indptr, indices, shape, /*check=*/false, Entries::unknown), edge, edge_index.size(1)};
}

Tensor Edges::in_order(const Tensor& features, const Tensor& of_loops) const {
  return at::cat({features, of_loops}).index_select(0, edge);
}

}  // namespace gossamer
