// SPDX-License-Identifier: BSD-3-Clause
// A C++ program that differentiates through a sparse product and through layers, without Python. It is compiled with
// warnings as errors: options in braces leave fields out, which must be silent.
#include <gossamer/gossamer.h>
#include <gossamer/nn.h>
#include <torch/torch.h>

#include <iostream>

#if GOSSAMER_VERSION_MAJOR == 0 && GOSSAMER_VERSION_MINOR < 1
#error "this program wants Gossamer 0.1"
#endif

namespace nn = gossamer::nn;

struct Net : torch::nn::Module {
  nn::GATConv first = register_module("first", nn::GATConv(4, 8, {.heads = 2, .dropout = 0.1}));
  nn::GATv2Conv second = register_module("second", nn::GATv2Conv(16, 4, {.concat = false, .residual = true}));
  nn::GCNConv last = register_module("last", nn::GCNConv(4, 2, {.improved = true}));
  gossamer::SparseMatrix A;  // empty until it is given

  torch::Tensor forward(const torch::Tensor& x) {
    return last->forward(second->forward(torch::elu(first->forward(x, A)), A), A);
  }
};

int main() {
  auto A = gossamer::poisson({4, 4}, torch::kFloat64).requires_grad_();
  const auto x = torch::ones(16, torch::kFloat64).requires_grad_();
  A.matmul(x).square().sum().backward();
  const auto D = A.detach().to_dense();
  const auto dx = 2 * D.t().mv(D.mv(x));
  std::cout << A << '\n' << *A.grad() << '\n' << A.pattern() << '\n' << gossamer::show_config() << '\n';

  Net net;
  net.A = gossamer::eye(16) + gossamer::poisson({4, 4}).abs();
  net.forward(torch::randn({16, 4})).sum().backward();
  nn::GATConv bipartite({3, 4}, 8, {.add_self_loops = false});
  const bool learned = net.parameters()[0].grad().defined() && bipartite->lin_dst->weight.size(1) == 4;
  const auto Z = gossamer::gat_attention(net.A, torch::ones({16, 1, 2}), torch::ones({16, 1}), torch::ones({16, 1}), {},
                                         {.dropout = 0.5});
  return torch::allclose(x.grad(), dx) && A.grad()->nnz() == A.nnz() && learned && Z.size(2) == 2 ? 0 : 1;
}
