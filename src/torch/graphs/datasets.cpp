// SPDX-License-Identifier: BSD-3-Clause
// Graphs from a folder of text files. The matrices are read by read_mtx; here are the lists of integers, and the check
// that all of it fits together.
#include <gossamer/datasets.h>

#include <ATen/ATen.h>
#include <gossamer/kernels/file.h>

#include <charconv>
#include <filesystem>
#include <ostream>
#include <sstream>

#include <gossamer/io.h>
#include "core/csr.h"
#include "core/op.h"
#include "files/mtx.h"

namespace gossamer::datasets {
namespace {

using Masks = std::tuple<Tensor, Tensor, Tensor>;

// One integer a line; blank lines are skipped.
std::vector<int64_t> parse(const std::string& path, std::string_view text) {
  std::vector<int64_t> numbers;
  int64_t line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    constexpr std::string_view blank = " \t\r";
    word.remove_prefix(std::min(word.find_first_not_of(blank), word.size()));
    word = word.substr(0, word.find_last_not_of(blank) + 1);
    if (word.empty()) continue;
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    TORCH_CHECK_VALUE(error == std::errc() && stop == word.data() + word.size(), path, ":", line, ": '",
                      std::string(word.substr(0, 40)), "' is not an integer");
    numbers.push_back(number);
  }
  return numbers;
}

std::tuple<Tensor, int64_t> read_integers(c10::string_view path_) {
  const std::string path(path_);
  try {
    const Buffer file = read_file(path);
    return {at::tensor(parse(path, file.view()), at::kLong), 0};
  } catch (const BadFile& error) {
    TORCH_CHECK_VALUE(false, path, ": ", error.what());
  } catch (const std::system_error& error) {
    return {at::empty({0}, at::kLong), error.code().value()};
  }
}

// The nodes of a split as a mask, after a check that each is a node, once, and in no split before it.
Tensor mask_of(const std::string& where, const char* name, const Tensor& nodes, Tensor& taken) {
  const int64_t n = taken.size(0);
  TORCH_CHECK_VALUE(nodes.dim() == 1 && nodes.scalar_type() == at::kLong, where, ": the ", name,
                    " nodes must be a list of int64, not ", nodes.scalar_type(), " of shape ", shape_text(nodes));
  if (nodes.numel() > 0) {
    const int64_t low = nodes.min().item<int64_t>(), high = nodes.max().item<int64_t>();
    TORCH_CHECK_VALUE(low >= 0 && high < n, where, ": ", name, " node ", low < 0 ? low : high, " is outside the ", n,
                      " nodes");
  }
  const Tensor mask = at::zeros({n}, at::kBool).index_fill(0, nodes, true);
  TORCH_CHECK_VALUE(mask.sum().item<int64_t>() == nodes.numel(), where, ": a ", name, " node is named twice");
  TORCH_CHECK_VALUE(!mask.logical_and(taken).any().item<bool>(), where, ": a ", name,
                    " node is in another split as well");
  taken = taken.logical_or(mask);
  return mask;
}

Masks check_graph(const std::string& where, at::IntArrayRef adjacency, at::IntArrayRef x, const Tensor& y,
                  const Tensor& train, const Tensor& val, const Tensor& test) {
  TORCH_CHECK_VALUE(adjacency.size() == 2 && adjacency[0] == adjacency[1], where,
                    ": the adjacency matrix must be square, not ", adjacency);
  const int64_t n = adjacency[0];
  TORCH_CHECK_VALUE(x.size() == 2 && x[0] == n, where, ": there are ", n, " nodes but features of shape ", x);
  TORCH_CHECK_VALUE(y.dim() == 1 && y.size(0) == n, where, ": there are ", n, " nodes but ", y.numel(), " labels");
  TORCH_CHECK_VALUE(n == 0 || y.min().item<int64_t>() >= -1, where, ": label ", y.min().item<int64_t>(),
                    " is neither a class nor -1");
  TORCH_CHECK_VALUE(n == 0 || y.max().item<int64_t>() < n, where, ": label ", y.max().item<int64_t>(),
                    " would make more classes than the ", n, " nodes");
  Tensor taken = at::zeros({n}, at::kBool);
  const Tensor train_mask = mask_of(where, "train", train, taken), val_mask = mask_of(where, "val", val, taken);
  const Tensor test_mask = mask_of(where, "test", test, taken);
  TORCH_CHECK_VALUE(!y.lt(0).logical_and(taken).any().item<bool>(), where, ": a node of a split has no label");
  return {train_mask, val_mask, test_mask};
}

Masks check_graph_op(c10::string_view where, at::IntArrayRef adjacency, at::IntArrayRef x, const Tensor& y,
                     const Tensor& train, const Tensor& val, const Tensor& test) {
  return check_graph(std::string(where), adjacency, x, y, train, val, test);
}

}  // namespace

Tensor Graph::dense_x() const {
  if (const auto* dense = std::get_if<Tensor>(&x)) return *dense;
  return std::get<SparseMatrix>(x).to_dense();
}

int64_t Graph::num_features() const {
  const auto* dense = std::get_if<Tensor>(&x);
  return dense ? dense->size(1) : std::get<SparseMatrix>(x).cols();
}

Graph Graph::to(at::Device device) const {
  const auto moved = [device](const auto& part) { return std::variant<SparseMatrix, Tensor>(part.to(device)); };
  return {adjacency.to(device), std::visit(moved, x), y.to(device), train_mask.to(device),
          val_mask.to(device),  test_mask.to(device), num_classes};
}

std::string Graph::repr() const {
  const auto count = [](const Tensor& mask) { return mask.sum().item<int64_t>(); };
  std::ostringstream text;
  text << "Graph(" << num_nodes() << " nodes, " << adjacency.nnz() << " edges, " << num_features() << " features, "
       << num_classes << " classes, " << count(train_mask) << "/" << count(val_mask) << "/" << count(test_mask)
       << " train/val/test)";
  return text.str();
}

std::ostream& operator<<(std::ostream& out, const Graph& graph) {
  return out << graph.repr();
}

Graph assemble(const std::string& where, const SparseMatrix& adjacency, const std::variant<SparseMatrix, Tensor>& x,
               const Tensor& y, const Tensor& train, const Tensor& val, const Tensor& test) {
  const auto* dense = std::get_if<Tensor>(&x);
  const auto size = dense ? dense->sizes() : at::IntArrayRef(std::get<SparseMatrix>(x).shape());
  const auto [train_mask, val_mask, test_mask] = check_graph(where, adjacency.shape(), size, y, train, val, test);
  const int64_t classes = y.numel() ? y.max().item<int64_t>() + 1 : 0;
  return {adjacency.with_values(at::ones_like(adjacency.values())), x, y, train_mask, val_mask, test_mask, classes};
}

Graph load(const std::string& folder) {
  const std::filesystem::path in(folder);
  const auto integers = [&in](const char* name) {
    const std::string path = in / name;
    const auto [numbers, error] = read_integers(path);
    check_system("load", path, error);
    return numbers;
  };
  const SparseMatrix adjacency = read_mtx(in / "adjacency.mtx", at::kFloat);
  const SparseMatrix x = read_mtx(in / "features.mtx", at::kFloat);
  const Tensor y = integers("labels.txt");
  return assemble("load: " + folder, adjacency, x, y, integers("train.txt"), integers("val.txt"), integers("test.txt"));
}

static const Composites composites =
    Composites()
        .def("read_integers(str path) -> (Tensor numbers, int error)", read_integers)
        .def(
            "check_graph(str where, int[] adjacency, int[] x, Tensor y, Tensor train, Tensor val, Tensor test) -> "
            "(Tensor train_mask, Tensor val_mask, Tensor test_mask)",
            check_graph_op);

}  // namespace gossamer::datasets
