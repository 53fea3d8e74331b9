// SPDX-License-Identifier: BSD-3-Clause
// The edges of the graphs that layers saw: sorted once a graph, whichever layer asks, from any thread.
#include <ATen/ATen.h>

#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "core/csr.h"
#include "graphs/layers.h"

namespace gossamer::nn {
namespace {

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

// What tells that an edge_index was written to. On the host NumPy and `.data` can do so without torch's counter of
// versions, so its numbers are looked at, which takes about a hundredth of a layer's time; on a device it is that
// counter. Nothing, if that cannot be told.
std::optional<int64_t> state_of(const Tensor& edge_index) {
  if (edge_index.is_cpu() && at::isIntegralType(edge_index.scalar_type(), /*includeBool=*/false))
    return ops::checksum(edge_index);
  if (edge_index.is_inference()) return std::nullopt;
  return edge_index._version();
}

// The edges made of one edge_index, by its state and by what was asked.
struct KeptEdges {
  WeakTensor edge_index;
  std::map<std::tuple<int64_t, Shape, SelfLoops>, Edges> made;
};

// Every edge_index that lives and was seen. It does not own them: what was made of one that has died is dropped by the
// next call of any layer. A weak pointer holds the address, so that no later tensor is taken for the dead one.
class SeenGraphs {
 public:
  template <class F>
  Edges edges(const Tensor& edge_index, int64_t state, Shape shape, SelfLoops loops, const F& make) {
    const auto key = std::make_tuple(state, shape, loops);
    if (auto found = find(edge_index, key)) return *found;
    const Edges fresh = make();  // unlocked: two threads that come first both make it, and keep the last
    const std::lock_guard lock(mutex_);
    KeptEdges kept{WeakTensor(edge_index.getIntrusivePtr()), {}};
    auto& made = seen_.try_emplace(edge_index.unsafeGetTensorImpl(), std::move(kept)).first->second.made;
    std::erase_if(made, [&](const auto& item) { return std::get<0>(item.first) != std::get<0>(key); });
    made.insert_or_assign(key, fresh);
    return fresh;
  }

 private:
  template <class Key>
  std::optional<Edges> find(const Tensor& edge_index, const Key& key) {
    const std::lock_guard lock(mutex_);
    std::erase_if(seen_, [](const auto& item) { return item.second.edge_index.expired(); });
    const auto graph = seen_.find(edge_index.unsafeGetTensorImpl());
    if (graph == seen_.end()) return std::nullopt;
    const auto found = graph->second.made.find(key);
    return found == graph->second.made.end() ? std::nullopt : std::optional(found->second);
  }

  std::mutex mutex_;
  std::map<const c10::TensorImpl*, KeptEdges> seen_;
};

SeenGraphs& seen_graphs() {
  static auto* graphs = new SeenGraphs;  // never destroyed: threads and other statics may outlive main
  return *graphs;
}

Pattern pattern_of(const Adjacency& adjacency) {
  if (const auto* P = std::get_if<Pattern>(&adjacency)) return *P;
  if (const auto* A = std::get_if<DistributedMatrix>(&adjacency)) return A->pattern();
  return std::get<SparseMatrix>(adjacency).pattern();
}

}  // namespace

Tensor edge_index_of(const Adjacency& adjacency) {
  if (const Tensor* given = std::get_if<Tensor>(&adjacency)) return *given;
  const Pattern P = pattern_of(adjacency);
  return P.keep<Tensor>("edge_index", [&P] { return at::stack({P.indices().to(at::kLong), P.row_indices()}); });
}

Edges edges_of(const std::string& layer, const Adjacency& adjacency, Shape shape, SelfLoops loops) {
  if (const auto* A = std::get_if<DistributedMatrix>(&adjacency)) return shared_edges(layer, *A, loops);
  const Tensor edge_index = edge_index_of(adjacency);
  const auto make = [&] { return gossamer::edges(edge_index, shape, loops); };
  if (!std::holds_alternative<Tensor>(adjacency)) {
    const Pattern P = pattern_of(adjacency);
    TORCH_CHECK_VALUE(P.shape() == shape, layer, ": the pattern is (", P.rows(), ", ", P.cols(), ") but there are (",
                      shape[0], ", ", shape[1], ") (targets, sources)");
    return P.keep<Edges>("edges " + std::to_string(static_cast<int64_t>(loops)), make);
  }
  const auto state = state_of(edge_index);
  return state ? seen_graphs().edges(edge_index, *state, shape, loops, make) : make();
}

std::pair<Tensor, Tensor> as_given(const Adjacency& adjacency, const Edges& edges, const Tensor& weights) {
  const Tensor order = edges.edge.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  Tensor pairs = at::stack({edges.pattern.indices().to(at::kLong), edges.pattern.row_indices()});
  if (const auto* A = std::get_if<DistributedMatrix>(&adjacency)) pairs = original_pairs(*A, pairs);
  return {pairs.index_select(1, order), weights.index_select(0, order)};
}

}  // namespace gossamer::nn
