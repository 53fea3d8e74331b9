// SPDX-License-Identifier: BSD-3-Clause
// The preconditioners of a matrix as ops that give handles, for Python. A pattern of Python's comes as a handle, too,
// of the Pattern that keeps in C++ what is found once.
#include <ATen/ATen.h>

#include "core/op.h"
#include "precondition/matrix.h"
#include "solve/handles.h"

namespace gossamer {
namespace {

Tensor pattern_handle(TensorList pattern, at::IntArrayRef shape) {
  const c10::InferenceMode ordinary(false);
  TORCH_CHECK_VALUE(shape.size() == 2, "pattern_handle: shape must be (rows, cols), not ", shape.size(), " numbers");
  const std::vector<Tensor> compact = contiguous(pattern.vec());
  host_pattern("pattern_handle", compact, c10::fromIntArrayRefSlow(shape));  // for its checks
  return handle_of<Pattern>({std::make_shared<const Pattern>(Pattern::adopt(compact, {shape[0], shape[1]}))}, {});
}

SparseMatrix matrix(const Tensor& pattern, const Tensor& values) {
  return SparseMatrix(*object_of<Pattern>(pattern), values);
}

template <class T>
std::shared_ptr<const T> as(const Tensor& handle) {
  const auto M = std::dynamic_pointer_cast<const T>(ops::preconditioner_of(handle));
  TORCH_CHECK_TYPE(M, "the handle is one of another preconditioner");
  return M;
}

Tensor jacobi(const Tensor& pattern, const Tensor& values) {
  return ops::preconditioner_handle(linalg::jacobi(matrix(pattern, values)));
}

Tensor block_jacobi(const Tensor& pattern, const Tensor& values, at::IntArrayRef sizes, bool equal) {
  const SparseMatrix A = matrix(pattern, values);
  TORCH_CHECK_VALUE(!equal || sizes.size() == 1, "block_jacobi: one size for equal blocks, not ", sizes.size());
  return ops::preconditioner_handle(equal ? linalg::block_jacobi(A, sizes[0]) : linalg::block_jacobi(A, sizes));
}

Tensor ichol(const Tensor& pattern, const Tensor& values, double shift) {
  return ops::preconditioner_handle(linalg::ichol(matrix(pattern, values), shift));
}

Tensor ilu(const Tensor& pattern, const Tensor& values) {
  return ops::preconditioner_handle(linalg::ilu(matrix(pattern, values)));
}

Tensor amg(const Tensor& pattern, const Tensor& values, double theta, const std::optional<Tensor>& near_null_space,
           int64_t block_size, const std::optional<Tensor>& omega, int64_t coarse_size) {
  const linalg::AmgOptions options{theta, near_null_space.value_or(Tensor()), block_size, omega.value_or(Tensor()),
                                   coarse_size};
  return ops::preconditioner_handle(linalg::amg(matrix(pattern, values), options));
}

Tensor update(const Tensor& handle, const Tensor& pattern, const Tensor& values) {
  const auto M = as<linalg::MatrixPreconditioner>(handle)->copy();
  M->update(matrix(pattern, values));
  return ops::preconditioner_handle(M);
}

Tensor update_amg(const Tensor& handle, const Tensor& pattern, const Tensor& values, const Tensor& omega) {
  const auto M = std::dynamic_pointer_cast<linalg::Amg>(as<linalg::Amg>(handle)->copy());
  M->update(matrix(pattern, values), omega);
  return ops::preconditioner_handle(M);
}

// indptr, indices and values of L, or of U.
std::vector<Tensor> triangle(const Tensor& handle, bool upper) {
  const auto M = as<linalg::IncompleteFactors>(handle);
  const SparseMatrix F = upper ? M->U() : M->L();
  return {F.indptr(), F.indices(), F.values()};
}

std::vector<int64_t> amg_sizes(const Tensor& handle) {
  return as<linalg::Amg>(handle)->sizes();
}

double amg_complexity(const Tensor& handle) {
  return as<linalg::Amg>(handle)->operator_complexity();
}

const Composites composites =
    Composites()
        .def("pattern_handle(Tensor[] pattern, int[] shape) -> Tensor", pattern_handle)
        .def("jacobi(Tensor pattern, Tensor values) -> Tensor", jacobi)
        .def("block_jacobi(Tensor pattern, Tensor values, int[] sizes, bool equal) -> Tensor", block_jacobi)
        .def("ichol(Tensor pattern, Tensor values, float shift=0) -> Tensor", ichol)
        .def("ilu(Tensor pattern, Tensor values) -> Tensor", ilu)
        .def(
            "amg(Tensor pattern, Tensor values, float theta, Tensor? near_null_space, int block_size, Tensor? omega, "
            "int coarse_size) -> Tensor",
            amg)
        .def("update_preconditioner(Tensor handle, Tensor pattern, Tensor values) -> Tensor", update)
        .def("update_amg(Tensor handle, Tensor pattern, Tensor values, Tensor omega) -> Tensor", update_amg)
        .def("incomplete_triangle(Tensor handle, bool upper) -> Tensor[]", triangle)
        .def("amg_sizes(Tensor handle) -> int[]", amg_sizes)
        .def("amg_complexity(Tensor handle) -> float", amg_complexity);

}  // namespace
}  // namespace gossamer
