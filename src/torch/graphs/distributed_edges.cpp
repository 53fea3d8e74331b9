// SPDX-License-Identifier: BSD-3-Clause
// The edges of a graph that several processes share, as a layer wants them. A process has the edges that point at its
// own nodes: a pattern whose first columns are these nodes, in the order of the rows, and whose other columns are the
// nodes of others that its edges come from. The numbers that tell columns apart for everybody are their keys: rows are
// sorted by them, so that a sum over a row is made in the order in which one process alone would make it.
#include <gossamer/distributed.h>
#include <gossamer/edges.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gossamer/kernels/dropout.h>

#include <algorithm>
#include <vector>

#include <gossamer/reduce.h>
#include "core/csr.h"
#include "core/host.h"
#include "core/launch.h"
#include "core/op.h"
#include "distributed/exchange.h"
#include "graphs/degrees.h"
#include "graphs/self_loops.h"

namespace gossamer {
namespace {

constexpr const char* op_name = "distributed_edges";

struct Key {
  int64_t column, edge;  // edges are told apart by their places, so equal columns stay in the order they came in
  friend auto operator<=>(const Key&, const Key&) = default;
};

// The entries of row i in the order of their columns' keys, its own loop among them. An added loop is edge nnz + i.
template <class I>
void row_of(const PatternView<I>& A, const int64_t* keys, int64_t i, SelfLoops loops, std::vector<Key>& row) {
  row.clear();
  int64_t loop = A.nnz + i;
  for (int64_t p = A.indptr[i]; p < A.indptr[i + 1]; ++p) {
    if (loops == SelfLoops::none || A.indices[p] != i)
      row.push_back({keys[A.indices[p]], p});
    else if (loops == SelfLoops::remaining)
      loop = p;
  }
  if (loops != SelfLoops::none) row.push_back({keys[i], loop});
  if (!std::is_sorted(row.begin(), row.end())) std::sort(row.begin(), row.end());
}

template <class I>
int64_t length_of(const PatternView<I>& A, int64_t i, SelfLoops loops) {
  const I *begin = A.indices + A.indptr[i], *end = A.indices + A.indptr[i + 1];
  if (loops == SelfLoops::none) return end - begin;
  return end - begin - std::count(begin, end, static_cast<I>(i)) + 1;
}

void check_keys_of(const char* op, const char* name, const Tensor& keys, int64_t n) {
  TORCH_CHECK_TYPE(keys.scalar_type() == at::kLong, op, ": ", name, " must be int64, not ", keys.scalar_type());
  TORCH_CHECK_VALUE(keys.dim() == 1 && keys.size(0) == n, op, ": ", name, " must be (", n, ",), not ",
                    shape_text(keys));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> ops::distributed_edges(const Tensor& indptr, const Tensor& indices,
                                                          const Tensor& column_keys, int64_t self_loops) {
  const KeptResults kept;
  const SelfLoops loops = self_loops_of(op_name, self_loops);
  const int64_t rows = indptr.size(0) - 1, cols = column_keys.size(0);
  TORCH_CHECK_VALUE(rows >= 0, op_name, ": indptr is empty");
  check_keys_of(op_name, "column_keys", column_keys, cols);
  TORCH_CHECK_VALUE(loops == SelfLoops::none || rows <= cols, op_name, ": self-loops want a square matrix, whose ",
                    rows, " own rows are among its ", cols, " columns");
  const Tensor keys = column_keys.cpu().contiguous();
  const std::vector<Tensor> host = {indptr.cpu(), indices.cpu()};
  const PatternTensors A = host_pattern(op_name, host, {SymInt(rows), SymInt(cols)});
  const Tensor starts = at::zeros({rows + 1}, at::kLong);
  int64_t* to = mutable_ptr<int64_t>(starts);
  Tensor columns, edge;
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    const PatternView<I> view = A.view<I>();
    for (int64_t i = 0; i < rows; ++i) to[i + 1] = to[i] + length_of(view, i, loops);
    columns = host_integers(to[rows], indptr.scalar_type()), edge = host_integers(to[rows]);
    I* column_at = mutable_ptr<I>(columns);
    int64_t* edge_at = mutable_ptr<int64_t>(edge);
    at::parallel_for(0, rows, /*grain_size=*/1024, [&](int64_t begin, int64_t end) {
      std::vector<Key> row;
      for (int64_t i = begin; i < end; ++i) {
        row_of(view, ptr<int64_t>(keys), i, loops, row);
        for (size_t k = 0; k < row.size(); ++k) {
          edge_at[to[i] + k] = row[k].edge;
          column_at[to[i] + k] = row[k].edge < view.nnz ? view.indices[row[k].edge] : static_cast<I>(i);
        }
      }
    });
  });
  const auto device = indices.device();
  return {starts.to(device, indptr.scalar_type()), columns.to(device), edge.to(device)};
}

Tensor ops::entry_keys(const Tensor& indptr, const Tensor& indices, const Tensor& row_keys, const Tensor& column_keys,
                       int64_t cols) {
  const KeptResults kept;
  const int64_t rows = indptr.size(0) - 1;
  TORCH_CHECK_VALUE(rows >= 0, "entry_keys: indptr is empty");
  check_keys_of("entry_keys", "row_keys", row_keys, rows);
  check_keys_of("entry_keys", "column_keys", column_keys, column_keys.size(0));
  const Tensor host_rows = row_keys.cpu().contiguous(), host_columns = column_keys.cpu().contiguous();
  const std::vector<Tensor> host = {indptr.cpu(), indices.cpu()};
  const PatternTensors A = host_pattern("entry_keys", host, {SymInt(rows), SymInt(column_keys.size(0))});
  const Tensor keys = host_integers(indices.size(0));
  with_index_type<void>(indptr.scalar_type(), [&]<class, class I> {
    const PatternView<I> view = A.view<I>();
    const int64_t *of_row = ptr<int64_t>(host_rows), *of_column = ptr<int64_t>(host_columns);
    int64_t* key = mutable_ptr<int64_t>(keys);
    at::parallel_for(0, rows, /*grain_size=*/1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        uint64_t copies = 0;  // of the same column that stand before p
        for (int64_t p = view.indptr[i]; p < view.indptr[i + 1]; ++p) {
          copies = p > view.indptr[i] && view.indices[p] == view.indices[p - 1] ? copies + 1 : 0;
          key[p] = static_cast<int64_t>(static_cast<uint64_t>(of_row[i]) * static_cast<uint64_t>(cols) +
                                        static_cast<uint64_t>(of_column[view.indices[p]]) + copies * Dropout::step);
        }
      }
    });
  });
  return keys.to(indices.device());
}

int64_t ops::shared_seed(const Tensor& x, std::string_view group) {
  const distributed::Group ranks(group);
  Tensor seed =
      at::randint(std::numeric_limits<int64_t>::max(), {1}, x.options().dtype(at::kLong).requires_grad(false));
  if (ranks.rank() != 0) seed.zero_();  // all have drawn, so that their generators stay in step
  ranks.sum_(seed);
  return seed.item<int64_t>();
}

// As gcn_norm: a row's sum is this process's, the other end's comes from its owner.
Tensor ops::gcn_norm_rows(TensorList plan, at::IntArrayRef counts, const Tensor& weights, std::string_view group) {
  const char* op = "gcn_norm_rows";
  const auto check = [&](const distributed::Exchange& checked) {
    const int64_t entries = checked.block(/*t=*/false).entries();
    TORCH_CHECK_VALUE(weights.dim() >= 1 && weights.dim() <= 2 && weights.sym_size(0) == entries, op, ": weights ",
                      shape_text(weights), " must be (nnz,) or (nnz, H) for the ", entries, " entries of this rank");
    TORCH_CHECK_TYPE(weights.is_floating_point(), op, ": weights must be floating, not ", weights.scalar_type());
    distributed::check_device(op, weights, checked.block(/*t=*/false));
  };
  const bool traced = !distributed::has_contents(plan) || !distributed::has_contents({weights});
  const distributed::Exchange exchange =
      traced ? distributed::Exchange(op, plan, counts)
             : distributed::agreed(distributed::Group(group), op, plan, counts,
                                   "gcn_norm_rows: weights " + distributed::row_text(weights), check);
  const distributed::Block& A = exchange.block(/*t=*/false);
  return symmetric_norm(A.pattern(), weights, A.shape(),
                        [&](const Tensor& d) { return at::cat({d, halo(d, A.send_rows, A.send, A.recv, group)}); });
}

static const Composites composites =
    Composites()
        .def(
            "distributed_edges(Tensor indptr, Tensor indices, Tensor column_keys, int self_loops) -> "
            "(Tensor indptr, Tensor indices, Tensor edge)",
            ops::distributed_edges)
        .def("entry_keys(Tensor indptr, Tensor indices, Tensor row_keys, Tensor column_keys, int cols) -> Tensor",
             ops::entry_keys)
        .def("gcn_norm_rows(Tensor[] plan, int[] counts, Tensor weights, str group) -> Tensor", ops::gcn_norm_rows)
        .def("shared_seed(Tensor x, str group) -> int", ops::shared_seed);

}  // namespace gossamer
