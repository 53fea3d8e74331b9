// SPDX-License-Identifier: BSD-3-Clause
// Gossamer for C++: sparse matrices that can be differentiated, on torch's tensors.
//
//   auto A = gossamer::poisson({100, 100}).requires_grad_();
//   auto y = A.matmul(torch::ones(100 * 100));
//   y.square().sum().backward();
//   auto dA = A.grad();                    // on A's pattern
#pragma once
#include "attention.h"
#include "datasets.h"
#include "edges.h"
#include "elementwise.h"
#include "equations.h"
#include "golden.h"
#include "io.h"
#include "linalg.h"
#include "ops.h"
#include "pattern.h"
#include "reduce.h"
#include "sparse_matrix.h"
#include "sparse_ops.h"
#include "structure.h"
