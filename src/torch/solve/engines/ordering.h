// SPDX-License-Identifier: BSD-3-Clause
// In which order our own Cholesky factorisation eliminates. Minimum degree is quick and serves most patterns; of a 3-D
// grid it makes twice the factor that nested dissection makes, which libraries have that may be there or not.
#pragma once
#include <vector>

#include "solve/engines/engine.h"

namespace gossamer {

// row[k] is eliminated as number k, for a symmetric pattern; empty if the library is not there, or failed. The same on
// every call and for every number of threads.
std::vector<int> metis_order(const SquareColumns& A);    // METIS_NodeND
std::vector<int> pardiso_order(const SquareColumns& A);  // the one PARDISO factors with

}  // namespace gossamer
