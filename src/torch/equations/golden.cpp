// SPDX-License-Identifier: BSD-3-Clause
// Parameters drawn by a seed, and the network of equations on them.
#include <gossamer/golden.h>

#include <ATen/ATen.h>
#include <gossamer/kernels/generate.h>

#include "core/csr.h"
#include "core/op.h"

namespace gossamer::equations {
namespace {

using at::IntArrayRef;

Tensor glorot(Random& random, IntArrayRef shape, int64_t fan, at::ScalarType dtype) {
  const double bound = std::sqrt(6.0 / static_cast<double>(fan));
  const Tensor t = at::empty(shape, at::kDouble);
  double* out = mutable_ptr<double>(t);
  for (int64_t k = 0; k < t.numel(); ++k) out[k] = bound * (2 * random.uniform() - 1);
  return t.to(dtype);
}

// Three parameters a layer, in the order of ParametersV1 and V2.
std::vector<std::array<Tensor, 3>> draw_parameters(const GoldenOptions& options, int64_t features, int64_t classes) {
  Random random(static_cast<uint64_t>(options.seed));
  std::vector<std::array<Tensor, 3>> layers;
  const size_t count = options.hidden.size() + 1;
  for (size_t l = 0; l < count; ++l) {
    const int64_t K = options.heads[options.heads.size() == 1 ? 0 : l], d = l + 1 < count ? options.hidden[l] : classes;
    TORCH_CHECK_VALUE(K > 0 && d > 0, "golden: layer ", l + 1, " has ", K, " heads of ", d, " features");
    const auto matrix = [&, F = features] { return glorot(random, {K, F, d}, F + d, options.dtype); };
    const auto vector = [&] { return glorot(random, {K, d}, d + 1, options.dtype); };
    const Tensor first = matrix(), second = options.version == 1 ? vector() : matrix(), third = vector();
    layers.push_back({first, second, third});
    features = K * d;
  }
  return layers;
}

template <class Parameters>
Named run(const Pattern& A, const Tensor& H, const datasets::Graph& graph,
          const std::vector<std::array<Tensor, 3>>& parameters) {
  std::vector<Parameters> layers;
  for (const auto& [first, second, third] : parameters) layers.push_back({first, second, third});
  return network(A, H, graph.y, graph.train_mask, layers);
}

using Result = std::tuple<std::vector<std::string>, std::vector<Tensor>>;

Result golden_op(TensorList pattern, IntArrayRef shape, const Tensor& x, const Tensor& y, const Tensor& train_mask,
                 int64_t num_classes, int64_t version, IntArrayRef hidden, IntArrayRef heads, int64_t seed,
                 bool self_loops, at::ScalarType dtype) {
  TORCH_CHECK_VALUE(pattern.size() >= 2 && shape.size() == 2, "golden: a pattern is {indptr, indices} and a shape");
  const SparseMatrix A(pattern[0], pattern[1], at::ones({pattern[1].size(0)}, at::kFloat), {shape[0], shape[1]});
  const datasets::Graph graph{A, x, y, train_mask, {}, {}, num_classes};
  Result result;
  for (const auto& [name, value] : golden(graph, {version, hidden.vec(), heads.vec(), seed, self_loops, dtype})) {
    std::get<0>(result).push_back(name);
    std::get<1>(result).push_back(value);
  }
  return result;
}

}  // namespace

Named golden(const datasets::Graph& graph, const GoldenOptions& options) {
  TORCH_CHECK_VALUE(options.version == 1 || options.version == 2, "golden: version must be 1 or 2, not ",
                    options.version);
  TORCH_CHECK_VALUE(options.heads.size() == 1 || options.heads.size() == options.hidden.size() + 1,
                    "golden: wants the heads of ", options.hidden.size() + 1, " layers or of all at once, got ",
                    options.heads.size(), " numbers");
  TORCH_CHECK_TYPE(options.dtype == at::kFloat || options.dtype == at::kDouble,
                   "golden: dtype must be float32 or float64, not ", options.dtype);
  const Pattern edges = graph.adjacency.pattern();
  const Pattern A = options.self_loops ? edges.merge(eye(graph.num_nodes()).pattern()).pattern : edges;
  const Tensor H = graph.dense_x().to(options.dtype);
  const auto parameters = draw_parameters(options, H.size(1), graph.num_classes);
  Named all = {
      {"indptr", A.indptr()}, {"indices", A.indices()}, {"H0", H}, {"y", graph.y}, {"train_mask", graph.train_mask}};
  const Named rest =
      options.version == 1 ? run<ParametersV1>(A, H, graph, parameters) : run<ParametersV2>(A, H, graph, parameters);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

static const Composites composites = Composites().def(
    "golden(Tensor[] pattern, int[] shape, Tensor x, Tensor y, Tensor train_mask, int num_classes, int version, "
    "int[] hidden, int[] heads, int seed, bool self_loops, ScalarType dtype) -> (str[] names, Tensor[] values)",
    golden_op);

}  // namespace gossamer::equations
