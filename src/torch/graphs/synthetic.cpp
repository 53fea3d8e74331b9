// SPDX-License-Identifier: BSD-3-Clause
// Graphs made by a seed, with features and a split: what generate.h draws, as tensors.
#include <ATen/ATen.h>
#include <gossamer/kernels/generate.h>

#include <limits>

#include <gossamer/datasets.h>
#include "core/csr.h"
#include "core/op.h"

namespace gossamer::datasets {
namespace {

constexpr int64_t train_a_class = 20, val_a_class = 30;
constexpr double most_edges = 1e9;

// {indptr, indices, x, y, train_mask, val_mask, test_mask}
using Parts = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Random seeded(std::optional<int64_t> seed) {
  const int64_t drawn = seed ? *seed : at::randint(std::numeric_limits<int64_t>::max(), {1}, at::kLong).item<int64_t>();
  return Random(static_cast<uint64_t>(drawn));
}

struct Edges {
  std::vector<int64_t> rows, cols;

  void add(int64_t i, int64_t j) {
    rows.insert(rows.end(), {i, j});
    cols.insert(cols.end(), {j, i});
  }
};

// (N, F) float32: the mean of the node's class plus noise.
Tensor draw_features(Random& random, const std::vector<int64_t>& classes, int64_t num_classes, const Features& f) {
  std::vector<double> mean(static_cast<size_t>(num_classes * f.count));
  for (double& m : mean) m = random.normal();
  const Tensor x = at::empty({static_cast<int64_t>(classes.size()), f.count}, at::kFloat);
  float* out = mutable_ptr<float>(x);
  for (const int64_t c : classes)
    for (int64_t k = 0; k < f.count; ++k)
      *out++ = static_cast<float>(mean[static_cast<size_t>(c * f.count + k)] + f.noise * random.normal());
  return x;
}

// Of each class, in an order drawn: first the training nodes, then those for validation, then the rest.
std::array<Tensor, 3> draw_split(Random& random, const char* op, const std::vector<int64_t>& classes,
                                 int64_t num_classes) {
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(num_classes));
  for (size_t i = 0; i < classes.size(); ++i)
    members[static_cast<size_t>(classes[i])].push_back(static_cast<int64_t>(i));
  std::array<Tensor, 3> masks;
  for (Tensor& mask : masks) mask = at::zeros({static_cast<int64_t>(classes.size())}, at::kBool);
  for (size_t c = 0; c < members.size(); ++c) {
    auto& nodes = members[c];
    TORCH_CHECK_VALUE(static_cast<int64_t>(nodes.size()) > train_a_class + val_a_class, op, ": class ", c, " has ",
                      nodes.size(), " nodes, but ", train_a_class, " train and ", val_a_class, " validate");
    random.shuffle(nodes);
    for (size_t k = 0; k < nodes.size(); ++k) {
      const size_t which = k < train_a_class ? 0 : k < train_a_class + val_a_class ? 1 : 2;
      mutable_ptr<bool>(masks[which])[nodes[k]] = true;
    }
  }
  return masks;
}

Parts finish(Random& random, const char* op, const Edges& edges, const std::vector<int64_t>& classes,
             int64_t num_classes, const Features& f) {
  const auto n = static_cast<int64_t>(classes.size());
  const auto [indptr, indices, slot] =
      ops::coo(at::tensor(edges.rows, at::kLong), at::tensor(edges.cols, at::kLong), {n, n});
  const Tensor x = draw_features(random, classes, num_classes, f);
  const auto [train, val, test] = draw_split(random, op, classes, num_classes);
  return {indptr, indices, x, at::tensor(classes, at::kLong), train, val, test};
}

void check_features(const char* op, int64_t count, double noise) {
  TORCH_CHECK_VALUE(count >= 0, op, ": num_features must not be negative, got ", count);
  TORCH_CHECK_VALUE(std::isfinite(noise) && noise >= 0, op, ": noise must be a number from 0, not ", noise);
}

bool is_probability(double p) {
  return p >= 0 && p <= 1;
}

Parts block_model_op(at::IntArrayRef sizes, double p_in, double p_out, int64_t num_features, double noise,
                     std::optional<int64_t> seed) {
  constexpr const char* op = "stochastic_block_model";
  check_features(op, num_features, noise);
  TORCH_CHECK_VALUE(is_probability(p_in) && is_probability(p_out), op, ": p_in and p_out must be in [0, 1], not ", p_in,
                    " and ", p_out);
  double nodes = 0, expected = 0;
  for (const int64_t size : sizes) {
    TORCH_CHECK_VALUE(size > 0, op, ": a block of ", size, " nodes");
    const auto own = static_cast<double>(size);
    expected += p_in * own * (own - 1) / 2 + p_out * own * nodes;
    nodes += own;
  }
  TORCH_CHECK_VALUE(nodes > 0, op, ": wants at least one block");
  TORCH_CHECK_VALUE(nodes <= most_edges && expected <= most_edges, op, ": ", nodes, " nodes and about ", expected,
                    " edges are more than ", most_edges);
  Random random = seeded(seed);
  Edges edges;
  block_model(random, sizes.vec(), p_in, p_out, [&edges](int64_t i, int64_t j) { edges.add(i, j); });
  std::vector<int64_t> classes;
  for (size_t b = 0; b < sizes.size(); ++b)
    classes.insert(classes.end(), static_cast<size_t>(sizes[b]), static_cast<int64_t>(b));
  return finish(random, op, edges, classes, static_cast<int64_t>(sizes.size()), {num_features, noise});
}

Parts power_law_op(int64_t num_nodes, int64_t num_edges, double exponent, int64_t num_classes, double homophily,
                   int64_t num_features, double noise, std::optional<int64_t> seed) {
  constexpr const char* op = "power_law";
  check_features(op, num_features, noise);
  TORCH_CHECK_VALUE(num_nodes > 0 && num_nodes <= most_edges, op, ": num_nodes must be in 1 … ", most_edges, ", not ",
                    num_nodes);
  TORCH_CHECK_VALUE(num_edges >= 0 && num_edges <= most_edges, op, ": num_edges must be in 0 … ", most_edges, ", not ",
                    num_edges);
  TORCH_CHECK_VALUE(std::isfinite(exponent) && exponent > 2, op, ": exponent must be above 2, not ", exponent);
  TORCH_CHECK_VALUE(num_classes > 0 && num_classes <= num_nodes, op, ": ", num_classes, " classes of ", num_nodes,
                    " nodes");
  TORCH_CHECK_VALUE(is_probability(homophily), op, ": homophily must be in [0, 1], not ", homophily);
  Random random = seeded(seed);
  std::vector<int64_t> name(static_cast<size_t>(num_nodes)), classes(name.size());  // so that hubs are anywhere
  for (size_t i = 0; i < name.size(); ++i) name[i] = static_cast<int64_t>(i);
  random.shuffle(name);
  for (size_t i = 0; i < name.size(); ++i)
    classes[static_cast<size_t>(name[i])] = static_cast<int64_t>(i) % num_classes;
  Edges edges;
  power_law(random, num_nodes, num_edges, exponent, num_classes, homophily,
            [&](int64_t i, int64_t j) { edges.add(name[static_cast<size_t>(i)], name[static_cast<size_t>(j)]); });
  return finish(random, op, edges, classes, num_classes, {num_features, noise});
}

Graph graph_of(const Parts& parts, int64_t num_classes) {
  const auto& [indptr, indices, x, y, train, val, test] = parts;
  const int64_t n = y.size(0);
  const SparseMatrix adjacency(indptr, indices, at::ones({indices.size(0)}, at::kFloat), {n, n}, /*check=*/false);
  return {adjacency, x, y, train, val, test, num_classes};
}

}  // namespace

Graph stochastic_block_model(const std::vector<int64_t>& sizes, double p_in, double p_out, Features features,
                             std::optional<int64_t> seed) {
  return graph_of(block_model_op(sizes, p_in, p_out, features.count, features.noise, seed),
                  static_cast<int64_t>(sizes.size()));
}

Graph power_law(int64_t num_nodes, int64_t num_edges, double exponent, int64_t num_classes, double homophily,
                Features features, std::optional<int64_t> seed) {
  return graph_of(
      power_law_op(num_nodes, num_edges, exponent, num_classes, homophily, features.count, features.noise, seed),
      num_classes);
}

static const std::string parts =
    " -> (Tensor indptr, Tensor indices, Tensor x, Tensor y, Tensor train_mask, Tensor val_mask, Tensor test_mask)";
static const Composites composites =
    Composites()
        .def("stochastic_block_model(int[] sizes, float p_in, float p_out, int num_features, float noise, int? seed)" +
                 parts,
             block_model_op)
        .def(
            "power_law(int num_nodes, int num_edges, float exponent, int num_classes, float homophily, "
            "int num_features, float noise, int? seed)" +
                parts,
            power_law_op);

}  // namespace gossamer::datasets
