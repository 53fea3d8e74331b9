// SPDX-License-Identifier: BSD-3-Clause
// Gossamer for C++: sparse matrices that can be differentiated, on torch's tensors.
//
//   auto A = gossamer::poisson({100, 100}).requires_grad_();
//   auto y = A.matmul(torch::ones(100 * 100));
//   y.square().sum().backward();
//   auto dA = A.grad();                    // on A's pattern
#pragma once
#include <gossamer/attention.h>
#include <gossamer/cholesky.h>
#include <gossamer/compare.h>
#include <gossamer/config.h>
#include <gossamer/convergence.h>
#include <gossamer/datasets.h>
#include <gossamer/distributed.h>
#include <gossamer/distributed_solve.h>
#include <gossamer/edges.h>
#include <gossamer/elementwise.h>
#include <gossamer/equations.h>
#include <gossamer/golden.h>
#include <gossamer/io.h>
#include <gossamer/jacobian.h>
#include <gossamer/krylov.h>
#include <gossamer/least_squares.h>
#include <gossamer/linalg.h>
#include <gossamer/linear_operator.h>
#include <gossamer/pattern.h>
#include <gossamer/preconditioner.h>
#include <gossamer/preconditioners.h>
#include <gossamer/products.h>
#include <gossamer/reduce.h>
#include <gossamer/sparse_matrix.h>
#include <gossamer/spectral.h>
#include <gossamer/structure.h>
#include <gossamer/version.h>
