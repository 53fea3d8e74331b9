// SPDX-License-Identifier: BSD-3-Clause
// Solves with sparse matrices, differentiable in the matrix and in the right-hand side.
#pragma once
#include <c10/util/Exception.h>

#include <string>

#include <gossamer/sparse_matrix.h>

namespace gossamer {

// A matrix that cannot be solved with: no diagonal entry, a zero pivot, an empty row. Python sees it as
// gs.SingularMatrixError, which is torch.linalg.LinAlgError.
class SingularMatrixError : public c10::LinAlgError {
  using c10::LinAlgError::LinAlgError;
};

namespace ops {

// x with L x = b, or Lᵀ x = b if t, reading one triangle of L: solve_triangular in linalg.h. `levels`: as from
// levels(), or {} for rows one after the other; on a device level_ptr is the host's, which launches them. values (nnz,)
// or (nnz, H); b as X of spmm.
Tensor solve_triangular(TensorList pattern, const Tensor& values, const Tensor& b, SymIntArrayRef shape,
                        TensorList levels, bool upper, bool unit_diagonal, bool t);

// The analysis of a square pattern for `factorize`, and the factors of matrices on it for `factor_solve`: handles,
// int64 tensors that own what they stand for. kind: "auto", "lu" or "cholesky"; engine: "auto" or a name. A factor a
// head.
Tensor analyze(TensorList pattern, SymIntArrayRef shape);
Tensor factorize(const Tensor& analysis, const Tensor& values, c10::string_view kind, c10::string_view engine);
std::string factor_engine(const Tensor& factor);

// x with A x = b, or Aᵀ x = b if t, from the factor of A = (pattern, values). b as X of spmm. Refined until the
// backward error is a rounding error if `refine`, else only where factors turn out poor.
Tensor factor_solve(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                    SymIntArrayRef shape, bool t, bool refine = false);

// The real form of a complex matrix, for the ops above: the matrix of twice the size in which each entry z is the block
// [Re z, -Im z; Im z, Re z]. {indptr, indices, positions} of its pattern, which are kept with the pattern of A; its
// values; and x with A x = b, or Aᵀ x = b, for complex b, from the factor and the values of the real form.
std::tuple<Tensor, Tensor, Tensor> real_form(TensorList pattern, SymIntArrayRef shape);
Tensor real_values(const Tensor& values, const Tensor& positions);
Tensor complex_solve(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& b,
                     SymIntArrayRef shape, bool t, bool refine = false);

// log|det A|, whose gradient is A⁻ᵀ on the pattern, and the sign of det A, which is not differentiated.
Tensor factor_logdet(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape);
Tensor factor_sign(const Tensor& factor, const Tensor& values);

// A⁻¹ on the pattern of A, or A⁻ᵀ if t; and its derivative in the direction M on the pattern, -(B M B) with B = A⁻¹, or
// A⁻ᵀ if t, and Mᵀ in place of M if m. A few times the cost of a Cholesky factorisation; n solves for LU and on a
// device.
Tensor factor_inverse(const Tensor& factor, TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool t);
Tensor inverse_tangent(const Tensor& factor, TensorList pattern, const Tensor& values, const Tensor& M,
                       SymIntArrayRef shape, bool t, bool m);

// Rows of a triangle that can be solved at once: {level_ptr (n + 1), order (n)}, see triangular.h.
std::tuple<Tensor, Tensor> levels(const Tensor& indptr, const Tensor& indices, SymIntArrayRef shape, bool upper);

// values on the triangle, 0 off it (and on its diagonal if that is unit).
Tensor keep_triangle(TensorList pattern, const Tensor& values, SymIntArrayRef shape, bool upper, bool unit_diagonal);

}  // namespace ops

namespace linalg {

// x with L x = b, or Lᵀ x = b. Reads one triangle of L only, and not its diagonal if unit_diagonal.
// b: (n,) or (n, k); with H matrices on one pattern (n, H) or (n, H, k).
Tensor solve_triangular(const SparseMatrix& L, const Tensor& b, bool upper = false, bool unit_diagonal = false,
                        bool transpose = false);

// As torch::linalg_slogdet gives it.
struct SignAndLogDet {
  Tensor sign, logabsdet;
};

// The factors of a square matrix: they serve any number of solves, their gradients, and the determinant. Copies share
// them. The values of A must not be changed in place meanwhile.
class Factor {
 public:
  Factor(SparseMatrix A, SparseMatrix real, Tensor handle, bool flipped = false);

  const SparseMatrix& A() const { return A_; }
  // x with A x = b, or Aᵀ x = b; refine: until the backward error is a rounding error.
  Tensor solve(const Tensor& b, bool transpose = false, bool refine = false) const;
  Tensor logdet() const;                  // log|det A|; () or (H,). Gradient: A⁻ᵀ on the pattern
  SignAndLogDet slogdet() const;          // the sign of det A, and log|det A|
  SparseMatrix selected_inverse() const;  // A⁻¹ where A has entries
  Tensor inverse_diagonal() const;        // of A⁻¹, all of which A must have; (n,) or (n, H)
  std::string engine() const;             // the library that made the factors

 private:
  SparseMatrix A_, real_;  // what was factored: A or, if flipped, Aᵀ; or its real form
  Tensor handle_;
  bool flipped_;
};

// kind: "lu", "cholesky", or "auto". engine: "gossamer", "eigen", "cholmod", "umfpack", "pardiso", on a device
// "device" or "cudss", or "auto". See docs/linalg.md.
// The analysis of the pattern is kept with it. Throws SingularMatrixError.
Factor factorize(const SparseMatrix& A, const std::string& kind = "auto", const std::string& engine = "auto");

// A⁻¹ where A has entries, on the pattern of A: factorize(A).selected_inverse(). For a symmetric positive definite
// matrix it costs a few factorisations, else n solves.
SparseMatrix selected_inverse(const SparseMatrix& A);

// x with A x = b: factorize(A, kind, engine).solve(b).
Tensor solve(const SparseMatrix& A, const Tensor& b, const std::string& kind = "auto",
             const std::string& engine = "auto");

}  // namespace linalg
}  // namespace gossamer
