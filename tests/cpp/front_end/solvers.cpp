// SPDX-License-Identifier: BSD-3-Clause
// Iterative solves, spectra and preconditioners of the C++ front end.
#include <gossamer/krylov.h>
#include <gossamer/preconditioners.h>
#include <gossamer/spectral.h>

#include "wire.h"

namespace gossamer_cpp {
namespace {

namespace la = gossamer::linalg;
using S = gossamer::SparseMatrix;
using at::Tensor;

// x, and the residual in place of all of info.
std::pair<Tensor, Tensor> of(const la::KrylovResult& result) {
  return {result.x, result.info.residual};
}

const Ops krylov =
    Ops()
        .def("cg", [](const S& A, Tensor b, double rtol) { return of(la::cg(A, b, {.rtol = rtol})); })
        .def("minres", [](const S& A, Tensor b, double rtol) { return of(la::minres(A, b, {.rtol = rtol})); })
        .def("gmres", [](const S& A, Tensor b, double rtol) { return of(la::gmres(A, b, {.rtol = rtol})); })
        .def("bicgstab", [](const S& A, Tensor b, double rtol) { return of(la::bicgstab(A, b, {.rtol = rtol})); })
        .def("lsmr", [](const S& A, Tensor b, double rtol) { return of(la::lsmr(A, b, {.rtol = rtol})); });

const Ops spectra = Ops()
                        .def("eigsh_values", [](const S& A, int64_t k) { return std::get<0>(la::eigsh(A, k)); })
                        .def("eigsh_vectors", [](const S& A, int64_t k) { return std::get<1>(la::eigsh(A, k)); })
                        .def("eigsh_vectors.sigma",
                             [](const S& A, int64_t k, double sigma) {
                               la::EigshOptions options;
                               options.sigma = sigma;
                               return std::get<1>(la::eigsh(A, k, options));
                             })
                        .def("eigsh_values.sigma",
                             [](const S& A, int64_t k, double sigma) {
                               la::EigshOptions options;
                               options.sigma = sigma;
                               return std::get<0>(la::eigsh(A, k, options));
                             })
                        .def("svds_U", [](const S& A, int64_t k) { return std::get<0>(la::svds(A, k)); })
                        .def("svds_S", [](const S& A, int64_t k) { return std::get<1>(la::svds(A, k)); })
                        .def("svds_Vh", [](const S& A, int64_t k) { return std::get<2>(la::svds(A, k)); });

const Ops preconditioners =
    Ops()
        .def("jacobi", [](const S& A, Tensor r) { return la::jacobi(A)->apply(r, false); })
        .def("block_jacobi",
             [](const S& A, int64_t size, Tensor r) { return la::block_jacobi(A, size)->apply(r, false); })
        .def("ichol", [](const S& A, Tensor r) { return la::ichol(A)->apply(r, false); })
        .def("ilu", [](const S& A, Tensor r) { return la::ilu(A)->apply(r, false); })
        .def("amg", [](const S& A, Tensor r) { return la::amg(A)->apply(r, false); });

}  // namespace
}  // namespace gossamer_cpp
