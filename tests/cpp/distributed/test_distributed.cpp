// SPDX-License-Identifier: BSD-3-Clause
// Three ranks, each a thread: products and their first and second derivatives have the bits of one process.
#include <gossamer/distributed.h>
#include <gossamer/gossamer.h>
#include <gossamer/nn.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "store_backend.h"

using at::Tensor;
using gossamer::DistributedMatrix;
using gossamer::SparseMatrix;

namespace {

constexpr int ranks = 3;

// f(name of the group, rank) on every rank; what one of them throws is thrown here.
void on_ranks(const std::function<void(const std::string&, int)>& f) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  store->setTimeout(std::chrono::seconds(60));
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const StoreGroup group(store, rank, ranks);
        f(group.name, rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

SparseMatrix unsymmetric(int64_t rows, int64_t cols) {
  const auto generator = at::detail::createCPUGenerator(1);
  const Tensor dense = at::randn({rows, cols}, generator, at::kDouble);
  return gossamer::from_dense(at::where(dense.abs() > 1.2, dense, at::zeros_like(dense)));
}

Tensor entries_of(const SparseMatrix& A, const Tensor& rows) {
  std::vector<Tensor> places = {at::zeros({0}, at::kLong)};
  for (int64_t k = 0; k < rows.size(0); ++k) {
    const int64_t i = rows[k].item<int64_t>();
    places.push_back(at::arange(A.indptr()[i].item<int64_t>(), A.indptr()[i + 1].item<int64_t>(), at::kLong));
  }
  return at::cat(places);
}

// f of two variables, its gradients, and those of half their square.
std::vector<Tensor> with_derivatives(const std::function<Tensor(Tensor, Tensor)>& f, Tensor a, Tensor b) {
  a = a.detach().clone().requires_grad_(), b = b.detach().clone().requires_grad_();
  const Tensor y = f(a, b);
  const auto first = torch::autograd::grad({y.pow(3).sum()}, {a, b}, {}, /*retain_graph=*/true, /*create_graph=*/true);
  const auto second = torch::autograd::grad({(first[0].square().sum() + first[1].square().sum()) / 2}, {a, b});
  return {y, first[0], first[1], second[0], second[1]};
}

void expect_equal(const std::vector<Tensor>& wanted, const std::vector<Tensor>& found, const std::vector<Tensor>& own) {
  for (size_t k = 0; k < wanted.size(); ++k)
    EXPECT_TRUE(at::equal(wanted[k].index_select(0, own[k]), found[k])) << "result " << k;
}

}  // namespace

TEST(Distributed, products_and_derivatives_are_those_of_one_process) {
  const SparseMatrix A = unsymmetric(40, 40);
  const Tensor X = at::randn({40, 3}, at::detail::createCPUGenerator(2), at::kDouble);
  on_ranks([&](const std::string& group, int) {
    for (const bool mixed : {false, true}) {
      const auto parts = mixed ? std::optional(at::arange(40, at::kLong).remainder(ranks)) : std::nullopt;
      const DistributedMatrix D = gossamer::distributed::scatter(A, group, parts);
      const Tensor rows = D.row_keys(), entries = entries_of(A, rows), x = X.index_select(0, rows);
      for (const bool t : {false, true}) {
        const auto wanted = with_derivatives(
            [&](const Tensor& v, const Tensor& z) { return gossamer::spmm(A.with_values(v), z, t); }, A.values(), X);
        const auto found = with_derivatives(
            [&](const Tensor& v, const Tensor& z) { return gossamer::spmm(D.with_values(v), z, t); }, D.values(), x);
        expect_equal(wanted, found, {rows, entries, rows, entries, rows});
      }
      const auto sampled = [](const auto& M) {
        return [&M](const Tensor& u, const Tensor& v) { return gossamer::sddmm(M, u, v).values(); };
      };
      expect_equal(with_derivatives(sampled(A), X, X.sin()), with_derivatives(sampled(D), x, x.sin()),
                   {entries, rows, rows, rows, rows});
    }
  });
}

TEST(Distributed, halo_of_a_row_and_its_gradient) {
  const SparseMatrix A = unsymmetric(20, 20);
  const Tensor X = at::randn({20, 2}, at::detail::createCPUGenerator(2), at::kDouble);
  on_ranks([&](const std::string& group, int) {
    const DistributedMatrix D = gossamer::distributed::scatter(A, group);
    const Tensor x = X.index_select(0, D.col_keys()).requires_grad_(), rows = D.halo(x);
    const Tensor columns = A.indices().index_select(0, entries_of(A, D.row_keys()));
    EXPECT_TRUE(at::equal(rows.index_select(0, D.pattern().indices()), X.index_select(0, columns)));
    // Σ rows³ over all ranks counts a row once for each rank that has it: 3 x² times their number.
    const Tensor grad = torch::autograd::grad({rows.pow(3).sum()}, {x}, {}, true, true)[0];
    const Tensor times = grad / (3 * x.square());
    EXPECT_TRUE(at::allclose(times, times.round()));
    const Tensor second = torch::autograd::grad({grad.sum()}, {x})[0];
    EXPECT_TRUE(at::allclose(second, 6 * x * times.round()));
  });
}

TEST(Distributed, transposes_rows_and_rectangles) {
  const SparseMatrix A = unsymmetric(30, 12);
  const Tensor X = at::randn({30, 2}, at::detail::createCPUGenerator(3), at::kDouble);
  on_ranks([&](const std::string& group, int) {
    const DistributedMatrix D = gossamer::distributed::scatter(A, group, at::arange(30, at::kLong).remainder(ranks));
    const Tensor rows = D.row_keys(), cols = D.col_keys(), x = X.index_select(0, rows);
    EXPECT_EQ(D.T().shape(), (gossamer::Shape{12, 30}));
    const Tensor wanted = gossamer::spmm(A, X, true).index_select(0, cols);
    EXPECT_TRUE(at::equal(D.T().matmul(x), wanted));
    const DistributedMatrix own = D.T().clone();
    EXPECT_TRUE(at::equal(own.matmul(x), wanted));
    EXPECT_TRUE(at::equal(own.T().values(), D.values()));
    EXPECT_TRUE(at::equal(D.row_sum(), A.sum(1).index_select(0, rows)));
    const Tensor entries = entries_of(A, rows);
    EXPECT_TRUE(at::equal((D * 2.0 + D.abs()).values(), (A.values() * 2 + A.values().abs()).index_select(0, entries)));
    EXPECT_TRUE(at::equal(D.row_softmax().values(), A.row_softmax().values().index_select(0, entries)));
    const DistributedMatrix G = D.clone().requires_grad_();
    G.matmul(at::ones({cols.size(0)}, at::kDouble)).sum().backward();
    EXPECT_TRUE(at::equal(G.grad()->values(), at::ones_like(D.values())));
  });
}

TEST(Distributed, an_error_of_one_rank_is_raised_on_all) {
  const SparseMatrix A = unsymmetric(20, 20);
  on_ranks([&](const std::string& group, int rank) {
    const DistributedMatrix D = gossamer::distributed::scatter(A, group);
    const Tensor x = at::ones({D.local_shape()[1] + (rank == 1)}, at::kDouble);
    try {
      D.matmul(x);
      ADD_FAILURE() << "rank " << rank << " went on";
    } catch (const c10::ValueError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 1: spmm: X"), std::string::npos) << error.what();
    }
    EXPECT_EQ(D.matmul(at::ones({D.local_shape()[1]}, at::kDouble)).size(0), D.local_shape()[0]);
  });
}

// Weights and features are multiples of powers of two: dense products then have no rounding, whatever their rows.
TEST(Distributed, layers_are_those_of_one_process) {
  const SparseMatrix A = unsymmetric(40, 40).abs();
  const Tensor X = (at::randn({40, 5}, at::detail::createCPUGenerator(2), at::kDouble) * 64).round() / 64;
  torch::manual_seed(3);
  gossamer::nn::GCNConv gcn(5, 4);
  gossamer::nn::GATConv gat(5, 4, {.heads = 2, .residual = true});
  gossamer::nn::GATv2Conv gatv2(5, 2, {.heads = 2, .concat = false});
  const torch::NoGradGuard off;
  for (torch::nn::Module* layer :
       {static_cast<torch::nn::Module*>(gcn.get()), static_cast<torch::nn::Module*>(gat.get()),
        static_cast<torch::nn::Module*>(gatv2.get())}) {
    layer->to(at::kDouble);
    for (Tensor& parameter : layer->parameters()) parameter.copy_((parameter * 1024).round() / 1024);
  }
  const auto outputs = [&](const gossamer::nn::Features& x, const gossamer::nn::Adjacency& graph) {
    return std::vector<Tensor>{gcn->forward(x, graph), gat->forward(x, graph), gatv2->forward(x, graph)};
  };
  const auto wanted = outputs(X, A);
  on_ranks([&](const std::string& group, int) {
    const torch::NoGradGuard off_here;  // a thread's own
    const DistributedMatrix D = gossamer::distributed::scatter(A, group, at::arange(40, at::kLong).remainder(ranks));
    const Tensor own = D.row_keys();
    expect_equal(wanted, outputs(X.index_select(0, own), D), {own, own, own});
  });
}

TEST(Distributed, one_process_needs_no_group) {
  const SparseMatrix A = gossamer::poisson({5, 4});
  const DistributedMatrix D = gossamer::distributed::scatter(A, "");
  EXPECT_TRUE(at::equal(D.matmul(at::ones({20})), A.matmul(at::ones({20}))));
  EXPECT_TRUE(at::equal(D.diagonal(), A.diagonal()));
  EXPECT_EQ(D.repr(), "DistributedMatrix(20 x 20, rows=20, nnz=82, halo=0, float32, group='', cpu)");
}
